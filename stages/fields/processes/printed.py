"""Document N's printed losses beside ours: negative log-likelihoods, so their sign is turned."""

from stages.tables.published import Printed, listed, named, read


def companions(experiment: str) -> dict[str, Printed]:
    """SET/MODEL-VARIANT of ours -> the printed log-likelihood, from companions.csv. DataError for a
    row that finds none, or stands twice."""
    rows, found = read(), {}
    rows = rows.filter(rows["metric"] == "nll")
    for row in listed(experiment, ("arm",)):
        one = named(rows, row, ("dataset",), experiment).row(0, named=True)
        found[row["arm"]] = Printed(
            one["table"], one["dataset"], -one["mean"], one["std"], one["note"] or ""
        )
    return found
