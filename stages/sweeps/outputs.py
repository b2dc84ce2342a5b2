"""What a sweep leaves: best.yaml, which training reads; trials.csv, every draw; importance.csv,
what the error depends on.

All are in git, to be read in a diff; the same draws give the same bytes. RMSE per component in
knots; an empty cell is a value that there is not. Importance: PED-ANOVA (Watanabe et al. 2023,
arXiv 2304.10255), the divergence of an argument's distribution among the best tenth of the draws
from that among all, scaled to the sum 1.
"""

import csv
from pathlib import Path
from typing import Any

import optuna
from ruamel.yaml import YAML

from stages import params
from stages.sweeps.ledger import Draw
from stages.sweeps.search import best
from stages.sweeps.space import distributions

EVALUATOR = "PED-ANOVA"


def write(folder: Path, draws: list[Draw], wanted: params.Sweep) -> None:
    """The three files. DataError when no draw has a finite error."""
    chosen, names = best(draws), list(wanted.space)

    def count(state: str) -> int:
        return sum(draw.state == state for draw in draws)

    told = {
        "arguments": {name: chosen.arguments[name] for name in names},
        "rmse_component_kn": chosen.value,
        "trials": len(draws),
        "sampler": wanted.sampler,
        "finished": count("finished"),
        "pruned": count("pruned"),
        "not_finite": count("not finite"),
    }
    with (folder / "best.yaml").open("w", encoding="utf-8") as stream:
        stream.write(
            f"# Found by the sweep stage: draw {chosen.draw} of {len(draws)}, by its RMSE on "
            "validation slices.\n"
        )
        YAML().dump(told, stream)
    table(
        folder / "trials.csv",
        ["draw", *names, "rmse_component_kn", "state"],
        [
            [draw.draw, *(draw.arguments[name] for name in names), draw.value, draw.state]
            for draw in draws
        ],
    )
    table(
        folder / "importance.csv",
        ["argument", "scale", "importance", "by"],
        importance(draws, wanted),
    )


def table(path: Path, titles: list[str], rows: list[list[Any]]) -> None:
    """A CSV file with LF line ends; None is an empty cell."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        out = csv.writer(stream, lineterminator="\n")
        out.writerow(titles)
        out.writerows(rows)


def importance(draws: list[Draw], wanted: params.Sweep) -> list[list[Any]]:
    """A row an argument: name, scale of its axis, importance and by which method; without one,
    why."""
    scale = {
        name: "words" if axis.of else "log" if axis.log else "linear"
        for name, axis in wanted.space.items()
    }
    known = [draw for draw in draws if draw.value is not None]
    if len({draw.value for draw in known}) < 2:
        return [
            [name, scale[name], None, f"not computed: {len(known)} draws with an error, all equal"]
            for name in scale
        ]
    study, axes = optuna.create_study(direction="minimize"), distributions(wanted)
    study.add_trials(
        [
            optuna.trial.create_trial(value=draw.value, params=draw.arguments, distributions=axes)
            for draw in known
        ]
    )
    found = optuna.importance.get_param_importances(
        study, evaluator=optuna.importance.PedAnovaImportanceEvaluator(), params=list(scale)
    )
    return [[name, scale[name], float(f"{found[name]:.6g}"), EVALUATOR] for name in scale]
