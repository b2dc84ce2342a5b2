"""Document R's valid times beside ours.

R's unit is read as t* over the exponent, as its equation 38 prints (errata, table 4 and figure
14); times the exponent squared it is Lyapunov times. Of Kuramoto-Sivashinsky R prints another
domain, L = 60.
"""

from dataclasses import dataclass

from stages.tables.published import listed, named, read

EXPONENTS = {"l96_f10": 2.2, "l96_f20": 4.5, "ks": 0.08844}  # R, sections 4.1 and 5.1


@dataclass(frozen=True)
class Printed:
    """One printed valid time: its table, in R's unit and in Lyapunov times."""

    table: str
    dataset: str
    document: float

    @property
    def where(self) -> str:
        """'gating 1'; of another domain than ours, which."""
        return f"{self.table}, of L = 60" if self.dataset == "ks" else self.table

    @property
    def lyapunov(self) -> float:
        """In Lyapunov times."""
        return self.document * EXPONENTS[self.dataset] ** 2


def companions(experiment: str) -> dict[str, Printed]:
    """SET/MODEL-VARIANT of ours -> the printed number, from companions.csv. DataError for a row
    that finds none, or stands twice."""
    rows, found = read(), {}
    rows = rows.filter(rows["metric"] == "vpt")
    for row in listed(experiment, ("arm",)):
        one = named(rows, row, ("dataset", "variant"), experiment).row(0, named=True)
        found[row["arm"]] = Printed(one["table"], one["dataset"], one["mean"])
    return found


def beside(printed: dict[str, Printed], dataset: str, arm: str) -> Printed | None:
    """What is printed for an arm ('rhn-attention-w48') of a set."""
    return printed.get(f"{dataset}/{'-'.join(arm.split('-')[:2])}")
