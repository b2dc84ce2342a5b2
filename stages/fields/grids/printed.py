"""Document G's printed log-likelihoods beside ours."""

from stages.tables.published import Printed, listed, named, read


def companions(experiment: str) -> dict[str, Printed]:
    """SET/MODEL-ARM of ours -> the printed log-likelihood, from companions.csv. DataError for a row
    that finds none, or stands twice."""
    rows, found = read(), {}
    rows = rows.filter(rows["metric"] == "log_likelihood")
    for row in listed(experiment, ("arm",)):
        one = named(rows, row, ("dataset", "variant"), experiment).row(0, named=True)
        found[row["arm"]] = Printed(
            one["table"], one["dataset"], one["mean"], one["std"], one["note"] or ""
        )
    return found
