"""No document prints a number of the joint nowcast."""

from stages.errors import DataError
from stages.tables.published import Printed, listed


def companions(experiment: str) -> dict[str, Printed]:
    """Nothing. DataError for a row of companions.csv, which no printed number fits."""
    if rows := listed(experiment, ("arm",)):
        raise DataError(
            "a printed number stands beside the joint nowcast",
            where=f"reports/{experiment}/companions.csv",
            expected="no row: no document has such an experiment",
            found=rows[0]["arm"],
            remedy="delete the row",
        )
    return {}
