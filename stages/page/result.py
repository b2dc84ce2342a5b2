"""A result as the pages list it: an arm's main number and the three companions that it must be read
beside.

`published` is what a document prints for the arm, `bound` the best that there can be (a noise
floor, an optimum, an entropy, a count), `trivial` what no learning reaches. Where one does not
exist the text says so: no companion is ever empty. An arm is a model over its seeds; `metric` is
the last part of its address for `tradewind audit`, `value` its mean ± spread over seeds [90 %
interval] in the unit that `measure` names.
"""

from dataclasses import dataclass
from pathlib import Path

import polars as pl

NOT_PUBLISHED = "not published"
NO_BOUND = "none is known"
DOCUMENTS = {  # as tables and claims name them: as people do
    "thesis": "thesis",
    "tetnp": "TE neural processes",
    "ongrid": "on/off grid",
    "gating": "dynamical systems",
    "slides": "slides",
}


@dataclass(frozen=True)
class Result:
    """One arm's main number as text, with its companions and where it stands."""

    experiment: str
    profile: str
    dataset: str
    arm: str
    name: str
    seeds: str
    measure: str
    value: str
    published: str
    bound: str
    trivial: str
    metric: str
    cell: str = ""  # where only a cell holds the number: the arm's first

    @property
    def address(self) -> str:
        """What `tradewind audit` is given."""
        return "/".join(
            (self.experiment, self.profile, self.dataset, self.cell or self.arm, self.metric)
        )


def documents(experiment: str, sources: list[str]) -> list[str]:
    """The documents (keys of DOCUMENTS) that an experiment is compared with or whose claims it
    checks, e.g. ['thesis']."""
    file = Path("reports", experiment, "companions.csv")
    told = sources + (
        pl.read_csv(file, infer_schema_length=0)["table"].to_list() if file.exists() else []
    )
    return [key for key in DOCUMENTS if any(text.split(" ")[0].strip(",") == key for text in told)]


def rerun(experiment: str, profile: str) -> str:
    """The command that makes an experiment's table again in a profile, with all that it rests on
    and that has changed."""
    return f"dvc repro reports/{experiment}/dvc.yaml:tabulate@{profile}"
