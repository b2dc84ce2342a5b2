"""Attacks on what is told beside the numbers: searches' trials, printed values, spreads of
training, the words of pages, curves, summaries.

Each is made to agree in records, locks and lists of code; what rests on it is left as it was,
which is derived again. One who also makes that again, and commits it, has the owner's word: the
audit names the last commits of such files (trusted.py).
"""

import csv
import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import real
from attack import Attack
from doctored import WALK, WIND
from flattered import PAIRS

SEARCHED = "chaos/mini/l96_f10/transformer-swept-swept-s0/valid_time"
TRIALS = "reports/chaos/mini/sweeps/l96_f10/transformer/trials.csv"
MIXED = "reports/token_mixing/mini/sweeps/sentence_pairs/self_attention/trials.csv"
PRINTED, WORDS = "data/published/thesis_table_1_2.csv", "stages/page/words.csv"
CURVES, SUMMARY = "reports/curves-mini.csv", "reports/summary-mini.json"
SPREADS = "data/spreads/mini/any_order.json"
Forge = Callable[[Path], None]


def cell(path: str, row: int, column: str, change: Callable[[str], str]) -> Forge:
    """One cell of a CSV told otherwise, all agreeing."""

    def forge(root: Path) -> None:
        titles, *rows = csv.reader((root / path).read_text(encoding="utf-8").splitlines())
        rows[row][titles.index(column)] = change(rows[row][titles.index(column)])
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([titles, *rows])
        real.write(root, path, text.getvalue())
        real.agree(root, path)

    return forge


def halved(text: str) -> str:
    """A number as text, halved."""
    return repr(float(text) / 2)


def widened(root: Path) -> None:
    """Every spread of an experiment a hundred times what was measured."""

    def work(content: object) -> None:
        for key, value in content.items() if isinstance(content, dict) else ():
            if key in ("absolute", "relative", "scaled"):
                content[key] = value * 100
            work(value)

    real.change(root, SPREADS, work)
    real.agree(root, SPREADS)


def reworded(root: Path) -> None:
    """Another reason why a printed value has none of ours beside it, lists of code made again."""
    text = (root / WORDS).read_text(encoding="utf-8")
    old = "times of one machine"
    assert old in text
    real.write(root, WORDS, text.replace(old, "the printed value was reached"))
    subprocess.run([sys.executable, "-P", "-m", "stages.code"], cwd=root, check=True,
                   env={"PATH": "", "PYTHONPATH": str(root)})  # fmt: skip
    changed = real.git(root, "diff", "--name-only").splitlines()
    real.agree(root, *changed)


def summed(root: Path) -> None:
    """A number of the summary told otherwise."""

    def first(content: dict) -> None:
        key, value = next(iter(sorted(content.items())))
        if isinstance(value, dict):
            first(value)
        else:
            content[key] = value * 0.5

    text = (root / SUMMARY).read_text(encoding="utf-8")
    content = json.loads(text)
    first(content)
    real.write(root, SUMMARY, json.dumps(content, indent=2, sort_keys=True) + "\n")
    real.agree(root, SUMMARY)


DERIVED = "derived again"
PRINTED_ATTACKS = (
    Attack(
        "a trial of forecasters told otherwise, its winner kept",
        SEARCHED,
        "raw",
        TRIALS,
        "made again from the raw files",
        cell(TRIALS, 0, "vpt_test", halved),
        "8",
    ),
    Attack(
        "a trial of forecasters told better than the winner",
        SEARCHED,
        "record",
        TRIALS.replace("trials.csv", "best.yaml"),
        "the least of its trials",
        cell(TRIALS, 0, "minus_vpt_val", lambda text: repr(float(text) * 2)),
        "8",
    ),
    Attack(
        "a trial of mixers told otherwise",
        PAIRS,
        "all",
        "reports/token_mixing/mini/",
        DERIVED,
        cell(MIXED, 2, "error_val", halved),
        "8",
    ),
    Attack(
        "a printed value told otherwise",
        WIND,
        "all",
        "reports/wind_baselines/mini/",
        DERIVED,
        cell(PRINTED, 0, "mean", halved),
        "7",
    ),
    Attack(
        "the spreads of training widened a hundred times",
        WALK,
        "all",
        "reports/any_order/mini/",
        DERIVED,
        widened,
        "12",
    ),
    Attack(
        "words of a page told otherwise, lists of code agreeing",
        WIND,
        "all",
        "reports/index.html",
        DERIVED,
        reworded,
        "7",
    ),
    Attack(
        "a curve of the front page told otherwise",
        WIND,
        "all",
        CURVES,
        DERIVED,
        cell(CURVES, 0, "y", halved),
        "7",
    ),
    Attack("a number of the summary told otherwise", WIND, "all", SUMMARY, DERIVED, summed, "7"),
)
