"""Attacks on the families of processes, grids, tokens, series and chaos: numbers told better than
can be, rows of the test where others learn from them, truths that suit a model."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import real
from attack import Attack
from doctored import CHAOS, evaluated, told
from safetensors.numpy import load_file, save

from stages import records

PROCESS = "processes/mini/eq_1d/tnp-attention-w32-s0/log_likelihood"
GRID = "on_off_grid/mini/dual_80/grid_tnp-setconv-line-s0/rmse"
JOINT = "joint_nowcast/mini/joint_sky/joint_tnp-both-w16-s0/log_likelihood"
SHAPES = "shapes/mini/shapes/self_attention-post_norm-w24-s0/mse"
PAIRS = "token_mixing/mini/sentence_pairs/self_attention-post_norm-w32-s0/accuracy"
WRONG = "token_mixing/mini/sentence_pairs/weight_vector-post_norm-w32-s0/accuracy"  # a tenth is
PICTURES = "pictures/mini/pictures/self_attention-pre_norm-w48-s0/satisfied"
TIDES = "series/mini/tides/transformer-pre-w48-s0/vpt"
TASKS, CELLS = (f"data/mini/prepared/{name}/tasks.safetensors" for name in ("eq_1d", "dual_80"))
ROWS, WORDS, DRAWN = (
    f"data/mini/prepared/{name}/inputs.npy" for name in ("shapes", "sentence_pairs", "pictures")
)
STATES = "data/mini/prepared/tides/series.npy"
Forge = Callable[[Path], None]


def says(number: str, **values: float) -> Forge:
    """Metrics of a number's cell told otherwise, intervals of the same width about them."""

    def work(entry: dict) -> None:
        for name, value in values.items():
            one = entry["metrics"][name]
            shift = value - one["value"]
            one.update({key: one[key] + shift for key in ("value", "low", "high") if key in one})

    return told(number, work)


def put_array(root: Path, path: str, array: np.ndarray) -> None:
    """An array in the place of another."""
    (root / path).unlink()
    np.save(root / path, array)


def put_raw(root: Path, path: str, arrays: dict[str, np.ndarray]) -> list[str]:
    """A raw archive in the place of another, with its line of the manifest; what has changed."""
    (root / path).unlink()
    np.savez_compressed(root / path, **arrays)
    folder, _, name = path.rpartition("/")
    manifest = f"{folder}/manifest.json"
    real.change(
        root, manifest, lambda one: one["files"][name].update(records.describe(root / path))
    )
    return [path, manifest]


def tasks(path: str, work: Callable[[dict[str, np.ndarray]], None]) -> Forge:
    """The arrays of kept tasks edited, raw and prepared."""

    def forge(root: Path) -> None:
        content, changed = load_file(root / path), [path]
        work(content)
        real.write(root, path, save(content))
        for split in ("val", "test"):
            raw = path.replace("/prepared/", "/raw/").replace("tasks.safetensors", f"{split}.npz")
            with np.load(root / raw) as found:
                arrays = {name: content[f"{split}.{name}"].astype(found[name].dtype)
                          for name in found}  # fmt: skip
            changed += put_raw(root, raw, arrays)
        real.agree(root, *changed)

    return forge


def suited(content: dict[str, np.ndarray]) -> None:
    """The truth of the test moved half of its way to what the exact law expects."""
    y, mean = content["test.target_y"], content["test.exact_mean"][..., None]
    content["test.target_y"] = ((y + mean) / 2).astype(y.dtype)


def selected(content: dict[str, np.ndarray]) -> None:
    """Tasks of the test in the place of those by which a training is stopped."""
    for name in [one for one in content if one.startswith("val.")]:
        other = content[name.replace("val.", "test.")]
        content[name][:10] = other[:10]


def rows(path: str, count: int = 50) -> Forge:
    """Rows of the test copied over training rows, raw and prepared alike where both are arrays."""

    def forge(root: Path) -> None:
        folder = path.rpartition("/")[0]
        split = np.load(root / folder / "split.npy")
        train, test = (np.flatnonzero(split == k)[:count] for k in (0, 2))
        changed = [path, f"{folder}/targets.npy"]
        for one in changed:
            array = np.load(root / one)
            array[train] = array[test]
            put_array(root, one, array)
        raw = f"{folder.replace('/prepared/', '/raw/')}/rows.npz"
        if (root / raw).is_file():
            with np.load(root / raw) as found:
                arrays = {name: found[name].copy() for name in found}
            for array in arrays.values():
                array[train] = array[test]
            changed += put_raw(root, raw, arrays)
        real.agree(root, *changed)

    return forge


def states(root: Path) -> None:
    """Hours of the test laid over hours that train."""
    series = np.load(root / STATES)
    series[:, 100:150] = series[:, 2500:2550]
    put_array(root, STATES, series)
    real.agree(root, STATES)


def pictured(root: Path) -> None:
    """Another task in the place of the one that a picture shows."""
    path = f"{evaluated(GRID)}/picture.npz"
    with np.load(root / path) as found:
        arrays = {name: found[name] for name in found}
    arrays["target_y"] = arrays["target_y"] / 2
    (root / path).unlink()
    np.savez_compressed(root / path, **arrays)
    real.agree(root, path)


def shuffled(number: str, score: str) -> Forge:
    """What a cell scored on single tasks, each told of another task: the mean stays, and what
    pairs of cells differ by from task to task does not."""

    def forge(root: Path) -> None:
        path, cell = f"{evaluated(number)}/items.npz", number.split("/")[3]
        with np.load(root / path) as found:
            arrays = {name: found[name] for name in found}
        arrays[f"{cell}.{score}"] = np.sort(arrays[f"{cell}.{score}"])
        (root / path).unlink()
        np.savez_compressed(root / path, **arrays)
        real.agree(root, path)

    return forge


def longer(root: Path) -> None:
    """A network valid for longer than the solver, in every unit and by its curve."""
    time, unit = 9.0, 2.2
    path = f"{evaluated(CHAOS)}/curves.json"
    cell = CHAOS.split("/")[3]

    def flat(content: dict) -> None:
        curve = content["curves"][cell]
        curve |= {level: [0.01 * float(level)] * len(band) for level, band in curve.items()}

    real.change(root, path, flat)
    real.agree(root, path)
    table = real.json.loads((root / f"{evaluated(CHAOS)}/metrics.json").read_text())
    unit = table["about"]["unit"]
    says(CHAOS, valid_time=time, vpt=time * unit, vpt_document=time / unit)(root)


def hash_attack(name: str, number: str, path: str, word: str, forge: Forge, issue: str) -> Attack:
    """One that falls at `hash`."""
    return Attack(name, number, "hash", path, word, forge, issue)


POSSIBLE, TOLD = "better than is possible", "metrics.json"
FLATTERED = (
    hash_attack(
        "a density and its gap told better than the exact law",
        PROCESS,
        f"{evaluated(PROCESS)}/{TOLD}",
        POSSIBLE,
        says(PROCESS, log_likelihood=-0.3, gap=-0.0595613902),
        "4",
    ),
    hash_attack(
        "a density told better, its gap left as it was",
        PROCESS,
        f"{evaluated(PROCESS)}/{TOLD}",
        "do not add up",
        says(PROCESS, log_likelihood=-0.4),
        "3",
    ),
    hash_attack(
        "a truth of processes that suits the models, raw and prepared",
        PROCESS,
        TASKS,
        "squared deviations from the exact law",
        tasks(TASKS, suited),
        "4",
    ),
    hash_attack(
        "tasks of the test among those that select, raw and prepared",
        PROCESS,
        TASKS,
        "have the targets of tasks of val",
        tasks(TASKS, selected),
        "5",
    ),
    hash_attack(
        "an error on the grid told below the exact law's",
        GRID,
        f"{evaluated(GRID)}/{TOLD}",
        POSSIBLE,
        says(GRID, rmse=0.3),
        "4",
    ),
    hash_attack(
        "a picture of another task",
        GRID,
        f"{evaluated(GRID)}/picture.npz",
        "none of the prepared ones",
        pictured,
        "3",
    ),
    hash_attack(
        "scores of single tasks told of other tasks: processes",
        PROCESS,
        f"{evaluated(PROCESS)}/items.npz",
        "the interval of its log_likelihood",
        shuffled(PROCESS, "log_likelihood"),
        "3",
    ),
    hash_attack(
        "scores of single tasks told of other tasks: on the grid",
        GRID,
        f"{evaluated(GRID)}/items.npz",
        "the interval of its rmse",
        shuffled(GRID, "rmse"),
        "3",
    ),
    hash_attack(
        "scores of single tasks told of other tasks: joint",
        JOINT,
        f"{evaluated(JOINT)}/items.npz",
        "the interval of its log_likelihood",
        shuffled(JOINT, "log_likelihood"),
        "3",
    ),
    hash_attack(
        "an error of shapes told below the noise",
        SHAPES,
        f"{evaluated(SHAPES)}/{TOLD}",
        POSSIBLE,
        told(SHAPES, lambda entry: entry["metrics"]["mse"].update(value=5e-3, low=4e-3, high=6e-3)),
        "4",
    ),
    hash_attack(
        "an accuracy above all",
        PAIRS,
        f"{evaluated(PAIRS)}/{TOLD}",
        POSSIBLE,
        says(PAIRS, accuracy=1.0 + 1 / 2979),
        "4",
    ),
    hash_attack(
        "a surprise told below what wrong answers cost",
        WRONG,
        f"{evaluated(WRONG)}/{TOLD}",
        "less than wrong answers cost",
        says(WRONG, cross_entropy=0.03),
        "3",
    ),
    hash_attack(
        "pictures said to meet more than they do",
        PICTURES,
        f"{evaluated(PICTURES)}/drawn.npy",
        "which cannot be",
        says(PICTURES, satisfied=0.999),
        "3",
    ),
    hash_attack(
        "shapes of the test copied over training ones, raw and prepared",
        SHAPES,
        ROWS,
        "have the values of training ones",
        rows(ROWS),
        "5",
    ),
    hash_attack(
        "sentence pairs of the test copied over training ones",
        PAIRS,
        WORDS,
        "are training ones",
        rows(WORDS),
        "5",
    ),
    hash_attack(
        "pictures of the test copied over training ones, raw and prepared",
        PICTURES,
        DRAWN,
        "are training ones",
        rows(DRAWN, 150),
        "5",
    ),
    hash_attack(
        "a forecast valid for longer than its curve allows",
        TIDES,
        f"{evaluated(TIDES)}/{TOLD}",
        "its curve allows",
        says(TIDES, vpt=2.5),
        "3",
    ),
    hash_attack(
        "hours of the test laid over hours that train",
        TIDES,
        STATES,
        "have the values of training ones",
        states,
        "5",
    ),
    hash_attack(
        "a forecast valid for longer than the solver's",
        CHAOS,
        f"{evaluated(CHAOS)}/{TOLD}",
        "longer than is possible",
        longer,
        "4",
    ),
)
