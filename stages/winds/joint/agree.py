"""Whether what was prepared and evaluated of the joint nowcast says one thing (stages/audit/
agreeing.py): prepared tasks are the raw ones, no task stands in two splits, and the exact laws of
the tasks follow from their reports and cells. Of an evaluation: what the companions score follows
from the tasks, what is kept of single tasks averages to what is told, with its interval,
squares and roots are of one error, and none errs less than the exact law. Real skies have no exact
law: their tasks are drawn again, of the raw file. No stage runs this."""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stages import params
from stages.audit import agreeing, apiece
from stages.audit.agreeing import Found, near
from stages.files import read_json
from stages.scores import items
from stages.scores.scores import covered, crps, log_likelihood
from stages.winds.joint import kept
from stages.winds.joint.kept import KeptTasks
from stages.winds.joint.law import READS
from stages.winds.joint.layout import COMPANIONS, OPTIMUM, SKY, SPLITS, TASKS
from stages.winds.joint.settings import FAMILY, Made, Real, Told, joint_of
from stages.winds.joint.tasks import Tasks
from stages.winds.joint.tasks import kept as stream_of

SIGMAS = 5.0
SOLVED = 1e-6  # of a standard deviation: a law solved again, by another machine


def prepared(home: Path) -> Found:
    """What in prepared tasks contradicts the raw ones, their law, or each other."""
    where, told = (home / TASKS).as_posix(), made_of(kept.about(home))
    parts = {split: kept.read(home, split) for split in SPLITS}
    if isinstance(told, Real):
        yield from redrawn(home, parts, told)
    for split, part in parts.items():
        if isinstance(told, Real):
            continue
        with np.load(home.parents[1] / "raw" / home.name / f"{split}.npz") as raw:
            for text in (*unlike(part, dict(raw)), *unlawful(part, told)):
                yield where, f"of {split}, {text}"
    seen = [{row.tobytes() for row in part.tasks.target_true} for part in parts.values()]
    if count := len(seen[0] & seen[1]):
        yield where, f"{count:,} tasks of test have the winds of tasks of val, which selects"


def made_of(about: dict[str, Any]) -> Told:
    """How the tasks were drawn, by what stands beside them."""
    schema = Real if about["made"].get("process") == "reanalysis" else Made
    return schema.model_validate_json(json.dumps(about["made"]))


def redrawn(home: Path, parts: Mapping[str, KeptTasks], told: Real) -> Found:
    """How tasks of a real sky are not those that the raw file gives, or what trains is not."""
    from stages.winds.joint import real, reanalysis

    where, about = (home / TASKS).as_posix(), kept.about(home)
    raw = home.parents[1] / "raw" / home.name
    field = reanalysis.read(raw, told.levels_hpa, told.members)
    mean, sd = real.moments(field, told)
    if not (near(sd, about["unit"][0], agreeing.FINE)
            and np.allclose(mean, about["mean_m_s"], rtol=agreeing.FINE)):  # fmt: skip
        yield where, "its values are made of other means and spreads than those of what trains"
        return
    for split, part in parts.items():
        mine = real.sky(field, told, split, mean, sd)
        tasks, places = mine.placed(len(part), told.targets, stream_of(told.seed, split))
        again = tasks.arrays() | {"where": places}
        for name, one in (part.tasks.arrays() | {"where": part.where}).items():
            if text := agreeing.of_rows(one, again[name]):
                yield where, f"of {split}, {name}{text} is not what the raw file gives"
    trains, whole = real.opened(home, told).field, field.only(told.strips_deg.train)
    if not np.array_equal(trains.values, whole.values.astype(np.float32), equal_nan=True):
        yield (home / SKY).as_posix(), "it holds other winds than the strips that train"


def arrays(part: KeptTasks) -> dict[str, np.ndarray]:
    """All of a split, by name, the exact laws among it."""
    exact = {name: part.laws[name] for name in READS}
    return Tasks(**{**vars(part.tasks), "answers": exact}).arrays()


def unlike(part: KeptTasks, raw: dict[str, np.ndarray]) -> Iterator[str]:
    """How a prepared split is not the raw one."""
    mine = arrays(part)
    for name in sorted(mine.keys() ^ raw.keys()):
        yield f"{name} stands in one of it and the raw tasks alone"
    for name in sorted(mine.keys() & raw.keys()):
        if not np.array_equal(mine[name], raw[name]):
            yield f"{name} is not that of the raw tasks"


def unlawful(part: KeptTasks, told: Made) -> Iterator[str]:
    """How a law that is kept is not the exact one of its task, or targets do not lie about it."""
    one = part.tasks
    again = told.law.answers(
        one.context_x, one.context_y, one.real, one.grid_y, -60 * one.age, one.target_x
    )
    for reads in READS:
        mean, sd = part.laws[reads]
        off = max(np.abs(mean - again[reads][0]).max(), np.abs(sd - again[reads][1]).max())
        if off > SOLVED:
            yield f"the law of {reads} is {off:.3g} off what its reports and cells give"
        square = np.square((one.target_y - mean) / sd[..., None]).mean((1, 2))
        error = float(square.std(ddof=1)) / len(square) ** 0.5
        if abs(square.mean() - 1) > SIGMAS * error:
            text = f"the targets lie {square.mean():.4g} +- {error:.2g} squared deviations from"
            yield f"{text} the exact law of {reads}, which are 1"


def evaluated(home: Path) -> Found:
    """What in the folder of an evaluation contradicts."""
    where, told = (home / "metrics.json").as_posix(), read_json(home / "metrics.json")
    folder = Path("data", home.parts[2], "prepared", home.name)
    test, about = kept.read(folder, "test"), kept.about(folder)
    for name, value in {"made": about["made"], "bound": about["bound"]["test"],
                        "fitted": about["fitted"], "tasks": len(test)}.items():  # fmt: skip
        if told["about"][name] != value:
            yield where, f"it tells another {name} than what was prepared"
    cells = told["cells"]
    for cell, law in COMPANIONS.items():
        if law not in test.laws:
            continue
        for text in companion(cells[cell]["metrics"], test, law, about["unit"][0]):
            yield where, f"{cell}: {text}"
    for cell, entry in cells.items():
        for text in rooted(entry):
            yield where, f"{cell}: {text}"
    asked = joint_of(agreeing.parameters(Path.cwd() / params.WHOLE), home.parts[2])
    mean = apiece.resampled(FAMILY, asked.resamples)
    for text in apiece.itemised(home, cells, kept.together(test, made_of(about)), mean):
        yield (home / items.FILE).as_posix(), text
    yield from agreeing.common(home)
    if OPTIMUM not in cells:
        return
    best = cells[OPTIMUM]["metrics"]["rmse"]
    what = "the mean of the exact law errs by"
    yield from agreeing.impossible(home, "rmse", what, best["value"], best["low"])
    yield from agreeing.impossible(home, "gap", "the exact law of the tasks has a gap of", 0.0)


def companion(told: dict[str, Any], test: KeptTasks, law: str, scale: float) -> Iterator[str]:
    """How a companion scores otherwise than its law does."""
    (mean, sd), y = test.laws[law], test.tasks.target_y
    wide = np.broadcast_to(sd[..., None], mean.shape)
    mine = {
        "mse": scale**2 * np.square(mean - test.tasks.target_true).mean(),
        "log_likelihood": log_likelihood(mean, wide, y).mean(),
        "crps": scale * crps(mean, wide, y).mean(),
        "coverage_50": covered(mean, wide, y, 0.5).mean(),
        "coverage_90": covered(mean, wide, y, 0.9).mean(),
    }
    for name, value in mine.items():
        if not near(float(value), told[name]["value"], agreeing.FINE):
            yield f"the prepared tasks give its law {name} {value}, not {told[name]['value']}"


def rooted(entry: dict[str, Any]) -> Iterator[str]:
    """How roots are not those of the squares, and breakdowns not parts of the whole."""
    told = entry["metrics"]
    if not near(told["rmse"]["value"] ** 2, told["mse"]["value"]):
        yield f"its rmse {told['rmse']['value']} is not the root of its mse, {told['mse']['value']}"
    for by in (name for name in entry if name.startswith("by_")):
        parts = [one["rmse"] for one in entry[by].values()]
        count = sum(one["n"] for one in parts)
        whole = sum(one["n"] * one["value"] ** 2 for one in parts) / max(count, 1)
        if count != told["rmse"]["n"] or not near(whole, told["rmse"]["value"] ** 2):
            yield f"its errors {by} give {whole**0.5} over {count:,}, not its rmse"
        ranked = [one["crps"] for one in entry[by].values()]
        whole = sum(one["n"] * one["value"] for one in ranked) / max(count, 1)
        if not near(whole, told["crps"]["value"]):
            yield f"its CRPS {by} give {whole}, not {told['crps']['value']}"


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code of the command."""
    judges = {"prepared": prepared, "evaluated": evaluated}
    return agreeing.main("stages.winds.joint.agree", judges, argv)


if __name__ == "__main__":
    sys.exit(main())
