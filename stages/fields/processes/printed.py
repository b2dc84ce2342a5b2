"""Document N's printed numbers beside ours: its losses, which are negative log-likelihoods, so that
their sign is turned; its memory (many.py)."""

from dataclasses import dataclass, field

from stages.fields.processes import many
from stages.tables.published import Printed, listed, named, read
from stages.tables.table import Table
from stages.tables.tabulation import Content

EQ = "eq"


@dataclass(frozen=True)
class Companions:
    """losses: SET/MODEL-VARIANT of ours -> the printed log-likelihood; memory: by number of
    dimensions, what was counted at as many points as the document has, beside its numbers."""

    losses: dict[str, Printed] = field(default_factory=dict)
    memory: dict[int, Table] = field(default_factory=dict)


def companions(experiment: str) -> Companions:
    """Those of an experiment, from its companions.csv and counts. DataError for a row that finds
    none, or stands twice."""
    rows, found = read(), {}
    rows = rows.filter(rows["metric"] == "nll")
    for row in listed(experiment, ("arm",)):
        one = named(rows, row, ("dataset",), experiment).row(0, named=True)
        found[row["arm"]] = Printed(
            one["table"], one["dataset"], -one["mean"], one["std"], one["note"] or ""
        )
    return Companions(found, many.tables(experiment))


def many_points(content: Content, dataset: str, printed: Companions) -> Table | None:
    """The counts that stand below a set: below the Gaussian process of the kernel eq of as many
    dimensions, None below others."""
    made = content["about"][dataset]["made"]
    return printed.memory.get(made["axes"]) if made["law"] == EQ else None
