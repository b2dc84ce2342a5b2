"""Rules on simulated systems: the raw files as acquired; mean and standard deviation of the
observations as the checks of the documents have them; the energy balance of Kuramoto-Sivashinsky;
chaos; parts of the series alike, none empty.

Statistics are of the system's own units, after the transient.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stages import files, runner
from stages.dynamics.layout import ABOUT, OBSERVED, SERIES
from stages.dynamics.settings import Simulated, dynamics_of, simulated_of
from stages.dynamics.systems.kuramoto import Kuramoto
from stages.validation import stage
from stages.validation.rules import MANIFEST, Rule, Table, acquired

MODULE = "stages.dynamics.validate"
# (mean, standard deviation) of X, by forcing: the system run once by other code, classical
# Runge-Kutta with dt = 0.005. Document R prints none.
CHECKED = {10.0: (2.7, 3.8), 20.0: (3.4, 6.8)}
LEVEL = "the observations are not the system's: look at its equations and at made.dt"
WRONG = 0.1  # relative, of the checks' two digits
BALANCED = 0.02  # of what goes in, what does not come out on the mean
RULES = [
    *MANIFEST,
    Rule("dynamics.mean", "levels", "mean_off", "critical", LEVEL, high=WRONG),
    Rule("dynamics.sd", "levels", "sd_off", "critical", LEVEL, high=WRONG),
    Rule("dynamics.balance", "levels", "balance_off", "critical", LEVEL, high=BALANCED),
    Rule("dynamics.chaos", "levels", "exponent_low", "critical",
         "the largest Lyapunov exponent is not above 0: the system is not chaotic", low=0.0),
    Rule("dynamics.parts", "parts", "times", "critical",
         "a part of the series is empty: mend the split", low=1),
    Rule("dynamics.alike", "parts", "sd_off", "warning",
         "a part varies otherwise than what trains: take a longer transient", high=0.2),
]  # fmt: skip


def plan(asked: runner.Asked) -> runner.Work:
    """Judge data/P/raw/D and data/P/prepared/D. InputError for a data set of another family."""
    known = dynamics_of(asked.parameters, asked["profile"]).datasets
    runner.known("simulated system", asked["dataset"], known)
    told = simulated_of(asked.parameters, asked["dataset"])

    def gather(
        raw: Path, prepared: Path, judged: dict[str, str]
    ) -> tuple[dict[str, Table], list[Rule]]:
        return summed(raw, prepared, judged, told), RULES

    return stage.work(asked, MODULE, "prepared", gather, {"made": told.model_dump(mode="json")})


def summed(raw: Path, prepared: Path, judged: dict[str, str], told: Simulated) -> dict[str, Table]:
    """The summaries of a set."""
    manifest, about = files.read_json(raw / "manifest.json"), files.read_json(prepared / ABOUT)
    series = np.load(prepared / SERIES, allow_pickle=False)
    rows: list[dict[str, Any]] = []
    for name, (first, end) in about["parts"].items():
        part = series[:, first:end]
        rows.append(
            {
                "part": name,
                "times": max(0, end - first),
                "sd_off": abs(float(part.std()) - 1.0) if part.size else 1.0,
            }
        )
    seen = np.load(raw / OBSERVED, allow_pickle=False)
    level = levels(seen, told) | {"exponent_low": about["exponent"]["low"]}
    return {
        **acquired(raw, manifest, judged),
        "levels": Table([{"set": raw.name, **level}], "set"),
        "parts": Table(rows, "part"),
    }


def levels(seen: np.ndarray, told: Simulated) -> dict[str, float]:
    """How far observations (E, T, O) lie from what is known of the system, relative; 0 where
    nothing is."""
    found = {"mean": float(seen.mean()), "sd": float(seen.std())}
    off = {"mean_off": 0.0, "sd_off": 0.0, "balance_off": 0.0}
    if told.forcing in CHECKED:
        mean, sd = CHECKED[told.forcing]
        off |= {"mean_off": abs(found["mean"] / mean - 1), "sd_off": abs(found["sd"] / sd - 1)}
    system = told.made()
    if isinstance(system, Kuramoto):
        bring, take = system.power(seen.reshape(-1, system.points).T)
        off |= {
            "mean_off": abs(found["mean"]) / found["sd"],
            "balance_off": abs(float(bring.mean() / take.mean()) - 1),
        }
    return found | off


def main(argv: Sequence[str] | None = None) -> int:
    """The stage's command line; its exit code."""
    about = "Judge a simulated system: its levels, its energy, its chaos."
    return runner.command(MODULE, about, ("profile", "dataset"), plan, argv)


if __name__ == "__main__":
    sys.exit(main())
