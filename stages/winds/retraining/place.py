"""What is judged: the captures of a profile, the data prepared from them, and the trained cells of
any experiment, each EXPERIMENT/CELL; and the check that the one comes from the other.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stages import files, records
from stages.errors import IntegrityError
from stages.params import Params
from stages.winds.retraining.champions import WEIGHTS


@dataclass(frozen=True)
class Place:
    """Where a profile keeps what is judged."""

    profile: str
    dataset: str

    @classmethod
    def of(cls, parameters: Params) -> "Place":
        """The profile and data set that params.yaml retrains on."""
        return cls(parameters.retraining.profile, parameters.retraining.dataset)

    @property
    def raw(self) -> Path:
        """The captures taken in."""
        return Path("data", self.profile, "raw", self.dataset)

    @property
    def prepared(self) -> Path:
        """What the models read."""
        return Path("data", self.profile, "prepared", self.dataset)

    @property
    def drift(self) -> Path:
        """The drift report, in git."""
        return Path("data", self.profile, "drift.json")

    def cell(self, address: str) -> Path:
        """The folder of a trained cell, EXPERIMENT/CELL."""
        experiment, _, name = address.partition("/")
        return Path("reports", experiment, self.profile, "runs", self.dataset, name)

    def records(self, *cells: str) -> Iterator[Path]:
        """The records from the raw data to the cells, each EXPERIMENT/CELL."""
        for stage in ("decode", "validate", "prepare"):
            yield records.location(stage, self.profile, self.dataset)
        for address in cells:
            experiment, _, cell = address.partition("/")
            yield records.location(
                "train", self.profile, self.dataset, experiment=experiment, cell=cell
            )


@dataclass(frozen=True)
class Side:
    """One of the two that are compared."""

    name: str
    net: Any
    meta: dict[str, Any]


def belongs(place: Place, *cells: str) -> None:
    """IntegrityError unless the cells come from the raw captures as they are now, step by step,
    by SHA-256 from disk."""
    remedy = f"run the profile `{place.profile}` again (`dvc repro`), then judge"
    hashes: dict[str, str] = {}
    for path in place.records(*cells):
        record = files.read_json(path)
        for name, about in (record["inputs"] | record["outputs"]).items():
            if name not in hashes:
                hashes[name] = files.sha256(name) if Path(name).is_file() else "no file"
            if hashes[name] != about["sha256"]:
                raise IntegrityError(
                    "what was recorded is not what is on disk",
                    where=name,
                    expected=f"{about['sha256']} ({path})",
                    found=hashes[name],
                    remedy=remedy,
                )
        if record["stage"] == "decode":
            more = {p.as_posix() for p in records.files_in([place.raw])} - set(record["inputs"])
            if more:
                raise IntegrityError(
                    "captures were taken in that are not decoded yet",
                    where=str(place.raw),
                    found=", ".join(sorted(more)[:5]),
                    remedy=remedy,
                )


def loaded(place: Place, name: str, cell: str) -> Side:
    """A trained cell, by the name that it has in the comparison. DataError where it cannot be
    loaded."""
    from stages.training import store

    return Side(name, *store.load(str(place.cell(cell) / WEIGHTS)))
