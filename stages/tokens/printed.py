"""The thesis' accuracies beside ours: of SNLI, its entailment task of three classes, on validation.

Generated pairs are not SNLI: the printed number tells the order of the mixers there, not a target.
"""

from dataclasses import dataclass

from stages.tables.published import listed, named, read


@dataclass(frozen=True)
class Printed:
    """One printed accuracy, percent, and its table."""

    table: str
    accuracy: float


def companions(experiment: str) -> dict[str, Printed]:
    """SET/MODEL-VARIANT of ours -> the printed number, from companions.csv. DataError for a row
    that finds none, or stands twice."""
    rows, found = read(), {}
    rows = rows.filter((rows["metric"] == "accuracy") & (rows["split"] == "val"))
    for row in listed(experiment, ("arm",)):
        one = named(rows, row, ("dataset", "variant"), experiment).row(0, named=True)
        found[row["arm"]] = Printed(one["table"], one["mean"])
    return found


def beside(printed: dict[str, Printed], dataset: str, arm: str) -> Printed | None:
    """What is printed for an arm ('hypermixing-tied-w32') of a set."""
    return printed.get(f"{dataset}/{'-'.join(arm.split('-')[:2])}")
