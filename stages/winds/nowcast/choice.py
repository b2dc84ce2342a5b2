"""Which trained cell a nowcast asks when none is named: the best on the validation minutes.

Every evaluated cell of the profile's winds, of any experiment, may answer, but one whose error does
not grow when the winds of its context change places: it does not use where they were measured. The
test minutes have no say; they tell the reader what to expect.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from stages import files
from stages.errors import InputError

LEAST = 1.02  # times the error that shuffled winds must give
ERROR, SHUFFLED = "rmse_component_val_kn", "rmse_permuted_component_val_kn"


@dataclass(frozen=True)
class Candidate:
    """A trained cell, and its error (kn per component) on the validation minutes, with its
    context's winds as they are and shuffled."""

    folder: Path
    error_kn: float
    shuffled_kn: float

    @property
    def indifferent(self) -> bool:
        """Whether it does not matter to it where the context's winds were measured."""
        return self.shuffled_kn < LEAST * self.error_kn


def homes(reports: Path, profile: str, dataset: str) -> list[Path]:
    """The experiments' folders in which cells of a data set were trained and evaluated here."""
    every = sorted(folder.parents[1] for folder in reports.glob(f"*/{profile}/runs/{dataset}"))
    return [home for home in every if (home / "evaluated" / dataset / "metrics.json").exists()]


def candidates(reports: Path, profile: str, dataset: str) -> list[Candidate]:
    """The cells of a data set that were trained and evaluated here, the best first."""
    found = []
    for home in homes(reports, profile, dataset):
        entries = files.read_json(home / "evaluated" / dataset / "metrics.json")["cells"]
        for name, entry in entries.items():
            folder, numbers = home / "runs" / dataset / name, entry["metrics"]
            if ERROR in numbers and (folder / "weights.safetensors").is_file():
                found.append(Candidate(folder, numbers[ERROR]["value"], numbers[SHUFFLED]["value"]))
    return sorted(found, key=lambda one: (one.error_kn, one.folder.as_posix()))


def best(
    profile: str, datasets: Sequence[str], reports: Path = Path("reports")
) -> tuple[Path, str]:
    """The cell to ask, of the first data set that has one, and why it. InputError where no cell
    may answer."""
    for dataset in datasets:
        every = candidates(reports, profile, dataset)
        fit = [one for one in every if not one.indifferent]
        if fit:
            deaf = len(every) - len(fit)
            passed = (
                "1 cell was passed over: it does"
                if deaf == 1
                else (f"{deaf} cells were passed over: they do")
            )
            why = (
                f"the least error on the validation minutes, {fit[0].error_kn:.1f} kn, of "
                f"{len(fit)} cells"
            ) + (f"; {passed} not use where winds were measured" if deaf else "")
            return fit[0].folder, why
    raise InputError(
        "no cell may answer",
        where=f"{reports}/*/{profile}/evaluated",
        expected=f"a trained and evaluated cell of {' or '.join(datasets)} that uses "
        "where winds were measured",
        remedy="run `make repro` first, or name a cell with --model",
    )
