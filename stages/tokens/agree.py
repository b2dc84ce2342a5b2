"""Whether what was prepared and evaluated of sets of tokens says one thing (stages/audit/
agreeing.py).

Prepared rows of what was made are the raw ones, those of each split in their order, but for what
was left out and counted; no row or group that tests or selects trains, too (in sets of an earlier
reading pairs do with other fillers, and pictures by chance). What needs no training follows from
the rows; no model is better than is possible: all right, or the noise of the answers. No stage
runs this.
Shapes: S rows, N tokens.
"""

import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stages.audit import agreeing
from stages.audit.agreeing import Found, near
from stages.files import read_json
from stages.splits import SPLITS
from stages.tokens import layout
from stages.tokens.layout import ABOUT, GROUPS, INPUTS, KINDS, SPLIT, TARGETS
from stages.tokens.parting import asked
from stages.tokens.prepare import SEPARATOR
from stages.tokens.tasks import glue, pictures
from stages.tokens.tasks.pairs import FILLERS

SIGMAS, FEW = 5.0, 2  # of copies more than chance allows
ROUNDED = 1e-6  # relative: float32
Unlike = Iterator[tuple[str, str]]  # (file, text)
SHARES = ("accuracy", "partner", "satisfied", "satisfied_other")


def loaded(home: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays of a prepared folder, by file, and about.json."""
    found = {
        name: np.load(home / name, allow_pickle=False)
        for name in (INPUTS, TARGETS, SPLIT, KINDS, GROUPS)
        if (home / name).is_file()
    }
    return found, read_json(home / ABOUT)


def prepared(home: Path) -> Found:
    """What in prepared rows contradicts the raw ones, or each other."""
    arrays, about = loaded(home)
    raw, where, split = home.parents[1] / "raw" / home.name, home / INPUTS, arrays[SPLIT]
    if "made" in about:  # a pinned table is cut into pieces that are learnt from it
        unlike = {"label": pairs, "value": shapes, "next": sequences}[about["task"]]
        for name, text in unlike(raw, arrays, about):
            yield (home / name).as_posix(), text
    counts = dict(zip(SPLITS, np.bincount(split, minlength=3).tolist(), strict=True))
    if (np.diff(split) < 0).any() or counts != about["rows"]:
        text = f"it does not say first {about['rows']}, as {ABOUT} does"
        yield (home / SPLIT).as_posix(), text
    rows, train = arrays[INPUTS], split == 0
    if about["task"] == "value":
        found = agreeing.alike(rows, train, ~train)
        yield from agreeing.leaked(where.as_posix(), "rows", found)
        return
    if "groups" in about:
        for name, text in together(rows, arrays[GROUPS], train, about):
            yield (home / name).as_posix(), text
    chance = about["task"] == "next" and "trains" not in about["dropped"]
    for text in copies(rows[train], rows[~train], chance):
        yield where.as_posix(), text


def copies(train: np.ndarray, held: np.ndarray, chance: bool) -> Iterator[str]:
    """How rows that select or test stand among those that train: more often than training ones
    stand there twice where `chance` allows any."""
    kind = np.dtype((np.void, train.dtype.itemsize * train.shape[1]))
    mine, other = (np.ascontiguousarray(one).view(kind).ravel() for one in (train, held))
    known, count = np.unique(mine, return_counts=True)
    hits, share = int(np.isin(other, known).sum()), count[count > 1].sum() / len(mine)
    spread = math.sqrt(len(other) * share * (1 - share))
    if hits > (len(other) * share + SIGMAS * spread + FEW if chance else 0):
        text = f"{hits:,} of {len(other):,} rows of val or test are training ones"
        yield text + (f", by chance it were {len(other) * share:.1f}" if chance else "")


def together(
    rows: np.ndarray, group: np.ndarray, train: np.ndarray, about: dict[str, Any]
) -> Unlike:
    """How a group, or a pair without its fillers, stands among training rows and others."""
    if len(shared := np.intersect1d(group[train], group[~train])):
        yield GROUPS, f"{len(shared):,} groups of val or test are training ones"
    if about.get("made"):
        fills = [place for place, word in enumerate(about["words"]) if word in ("", *FILLERS)]
        said = ~np.isin(rows, fills)
        plain = [tuple(row[one].tolist()) for row, one in zip(rows, said, strict=True)]
        known = {one for one, trains in zip(plain, train, strict=True) if trains}
        held = [one for one, trains in zip(plain, train, strict=True) if not trains]
        if hits := sum(one in known for one in held):
            yield INPUTS, f"{hits:,} of {len(held):,} pairs of val or test train with other fillers"


def astray(mine: Iterable[Any], rows: Iterable[Any], split: np.ndarray) -> int | None:
    """The first prepared row that is none of the raw ones behind the last of its split."""
    mine, rows = [*mine], [*rows]
    left = {part: iter(rows) for part in np.unique(split).tolist()}
    return next(
        (n for n, (one, part) in enumerate(zip(mine, split.tolist(), strict=True))
         if not any(one == row for row in left[part])), None,
    )  # fmt: skip


def pairs(raw: Path, arrays: dict[str, np.ndarray], about: dict[str, Any]) -> Unlike:
    """How prepared pairs are not the table's, in its order, without those that were left out."""
    table = glue.read(raw / layout.PAIRS, glue.FORMATS["pairs"])
    texts = [f" {SEPARATOR} ".join(one).split() for one in table.sentences]
    rows = zip(texts, table.labels, strict=True)
    words = about["words"]
    mine = [
        ([words[number] for number in row if number], label)
        for row, label in zip(arrays[INPUTS].tolist(), arrays[TARGETS].tolist(), strict=True)
    ]
    lone = astray(mine, rows, arrays[SPLIT])
    if lone is not None:
        yield INPUTS, f"its row {lone} is not of {(raw / layout.PAIRS).as_posix()}, in its order"
    left = len(texts) + sum(table.dropped.values()) - len(mine)
    if left != sum(about["dropped"].values()):
        text = f"it says that {sum(about['dropped'].values()):,} rows were left out, {left:,} were"
        yield ABOUT, text


def places(rows: int, about: dict[str, Any]) -> np.ndarray:
    """Of so many raw rows, those that are used: one in `every` of what would train, all others."""
    others = about["rows"]["val"] + about["rows"]["test"]
    return np.r_[0 : rows - others : about["every"], rows - others : rows]


def shapes(raw: Path, arrays: dict[str, np.ndarray], about: dict[str, Any]) -> Unlike:
    """How prepared shapes are not the raw ones, the inputs standardised."""
    with np.load(raw / layout.ROWS, allow_pickle=False) as found:
        used = places(len(found["inputs"]), about)
        inputs = (found["inputs"][used].astype(np.float64) - about["mean"]) / about["sd"]
        wanted = {INPUTS: inputs, TARGETS: found["answers"][used], KINDS: found["kinds"][used]}
    for name, values in wanted.items():
        mine = arrays[name]
        if mine.shape != values.shape or not np.allclose(mine, values, ROUNDED, ROUNDED):
            yield name, f"it is not what {(raw / layout.ROWS).as_posix()} holds"
    train = arrays[TARGETS][arrays[SPLIT] == 0].astype(np.float64)
    if not near(float(train.std()), about["answer_sd"], ROUNDED):
        yield ABOUT, "its deviation of the answers is not that of those that train"


def sequences(raw: Path, arrays: dict[str, np.ndarray], about: dict[str, Any]) -> Unlike:
    """How prepared pictures are not the raw ones."""
    with np.load(raw / layout.ROWS, allow_pickle=False) as found:
        rows = found["sequences"].astype(np.int32)
    for name in (INPUTS, TARGETS):
        mine = arrays[name].astype(np.int32)
        lone = astray(
            (row.tobytes() for row in mine), (row.tobytes() for row in rows), arrays[SPLIT]
        )
        if mine.shape[1:] != rows.shape[1:] or lone is not None:
            yield name, f"it is not what {(raw / layout.ROWS).as_posix()} holds"
    if about["every"] == 1 and len(rows) - len(arrays[SPLIT]) != sum(about["dropped"].values()):
        yield ABOUT, "it says of another number of rows that they were left out"


def evaluated(home: Path) -> Found:
    """What in the folder of an evaluation contradicts."""
    where, told = (home / "metrics.json").as_posix(), read_json(home / "metrics.json")
    arrays, about = loaded(Path("data", home.parts[2], "prepared", home.name))
    for key in about.keys() - {"words"}:
        if told["about"].get(key) != about[key]:
            yield where, f"it tells another {key} of the rows than what was prepared"
    for cell, entry in told["cells"].items():
        for text in (*possible(entry["metrics"]), *plain(cell, entry["metrics"], arrays, about)):
            yield where, f"{cell}: {text}"
    yield from example_mismatches(home, told, arrays, about)
    yield from agreeing.common(home)
    if "mse" in about["bound"]:
        what = "the noise of the answers has a variance of"
        yield from agreeing.impossible(home, "mse", what, about["bound"]["mse"])


def possible(metrics: dict[str, Any]) -> Iterator[str]:
    """How a number is none that a model can have: a share beyond 0 to 1, less surprise than none,
    or less than its wrong answers cost, each at least log 2."""
    for name, one in metrics.items():
        if name in SHARES and not 0 <= one["value"] <= 1:
            yield f"its {name} is {one['value']}, better than is possible: all right is 1"
    if abs(metrics.get("likeness", {"value": 0})["value"]) > 1:
        yield f"its likeness is {metrics['likeness']['value']}, and no correlation is beyond 1"
    accuracy, cost = metrics.get("accuracy"), metrics.get("cross_entropy")
    if accuracy and not near(right := accuracy["value"] * accuracy["n"], round(right)):
        yield f"its accuracy {accuracy['value']} is no share of {accuracy['n']:,} rows"
    if accuracy and cost and cost["value"] < (1 - accuracy["value"]) * math.log(2):
        text = f"its cross-entropy {cost['value']:.6g} is less than wrong answers cost where"
        yield f"{text} {accuracy['value']:.6g} are right"
    if metrics.get("nats", {"value": 0})["value"] < 0:
        yield f"its surprise is {metrics['nats']['value']}, better than is possible: none is 0"


def plain(
    cell: str, metrics: dict[str, Any], arrays: dict[str, np.ndarray], about: dict[str, Any]
) -> Iterator[str]:
    """How numbers are of other rows than there are, or what needs no training has others than
    follow from them."""
    targets, split = arrays[TARGETS], arrays[SPLIT]
    train, tests = targets[split == 0], targets[split == 2]
    for name in ("accuracy", "cross_entropy", "mse", "nats"):
        if name in metrics and metrics[name]["n"] != len(tests):
            yield f"its {name} is of {metrics[name]['n']:,} rows, prepared are {len(tests):,}"
    found = {}
    if cell == "majority":
        found["accuracy"] = float((tests == np.bincount(train).argmax()).mean())
    elif cell == "mean":
        found["mse"] = float(((tests - train.astype(np.float64).mean(0)) ** 2).mean())
    elif cell == "true":
        found["satisfied"] = 1.0
    for name, value in found.items():
        if not near(value, metrics[name]["value"]):
            yield f"the prepared rows give {name} {value}, not {metrics[name]['value']}"


def example_mismatches(
    home: Path, told: dict[str, Any], arrays: dict[str, np.ndarray], about: dict[str, Any]
) -> Found:
    """How what is shown is not of the first rows that test, or is of other cells."""
    file = home / {"value": layout.MAPS, "next": layout.DRAWN}.get(about["task"], "")
    if file == home:
        return
    found, split = np.load(file, allow_pickle=False), arrays[SPLIT]
    first = np.flatnonzero(split == 2)
    cells = told["about"]["shown"]
    if len(found) != len(cells) or not told["cells"].keys() >= {*cells}:
        yield file.as_posix(), f"it shows {len(found)} cells, metrics.json {len(cells)}"
        return
    if about["task"] == "value":
        row = np.stack((arrays[INPUTS][first[0]], arrays[KINDS][first[0]]))
        if not np.array_equal(np.load(home / layout.FIRST, allow_pickle=False), row):
            yield (home / layout.FIRST).as_posix(), "it is not the first prepared row that tests"
        return
    said, made = about["said"], about["made"]
    form = pictures.Form(made["high"], made["wide"], made["points"], made["statements"])
    if told["about"].get("drawn"):  # else as an earlier reading had it: the first that test
        count = told["about"]["drawn"]["rows"]
        first, known = asked(arrays[INPUTS], split, said, count)
        if known != told["about"]["drawn"]["prompts_that_train"]:
            yield (home / "metrics.json").as_posix(), f"of {known} drawn rows the statements train"
    for cell, drawn in zip(cells, found, strict=True):
        given = arrays[INPUTS][first[: len(drawn)]]
        if not np.array_equal(drawn[:, :said], given[:, :said]):
            yield file.as_posix(), f"{cell} was not given the statements of the first rows"
            continue
        one = told["cells"][cell]["metrics"]["satisfied"]
        met = sum(pictures.share(row, row[said:], form) for row in drawn)
        if not met - 1e-9 <= one["value"] * one["n"] <= met + one["n"] - len(drawn) + 1e-9:
            text = f"the {len(drawn)} pictures of {cell} meet {met:.6g}, which cannot be"
            yield file.as_posix(), f"{text} where {one['n']} meet {one['value']:.6g} each"


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code of the command."""
    judges = {"prepared": prepared, "evaluated": evaluated}
    return agreeing.main("stages.tokens.agree", judges, argv)


if __name__ == "__main__":
    sys.exit(main())
