"""The thesis' accuracies beside ours, on validation rows: of the same corpus where it is one of the
thesis'; beside generated pairs those of SNLI, its entailment task of three classes.

Generated pairs are not SNLI: the printed number tells the order of the mixers there, not a target.
"""

from dataclasses import dataclass

from stages.tables.published import listed, named, read

CORPORA = {"snli": "SNLI", "sst2": "SST-2", "qnli": "QNLI", "mnli": "MNLI", "qqp": "QQP"}


@dataclass(frozen=True)
class Printed:
    """One printed accuracy, percent, its table and its corpus."""

    table: str
    accuracy: float
    corpus: str

    @property
    def source(self) -> str:
        """The corpus and the table, as people write them."""
        return f"{CORPORA[self.corpus]}, {self.table}"


def companions(experiment: str) -> dict[str, Printed]:
    """SET/MODEL-VARIANT of ours -> the printed number, from companions.csv. DataError for a row
    that finds none, or stands twice."""
    rows, found = read(), {}
    rows = rows.filter((rows["metric"] == "accuracy") & (rows["split"] == "val"))
    for row in listed(experiment, ("arm",)):
        one = named(rows, row, ("dataset", "variant"), experiment).row(0, named=True)
        found[row["arm"]] = Printed(one["table"], one["mean"], one["dataset"])
    return found


def beside(printed: dict[str, Printed], dataset: str, arm: str) -> Printed | None:
    """What is printed for an arm ('hypermixing-tied-w32') of a set."""
    return printed.get(f"{dataset}/{'-'.join(arm.split('-')[:2])}")
