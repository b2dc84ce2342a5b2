"""README.md can be followed: its commands are understood, its targets and files exist, its numbers
are those of metrics.json.

Each check takes the text and the project's folder and returns what is wrong, so that it can be
shown to find planted mistakes.
"""

import json
import re
import shlex
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from stages import cli
from stages.audit.history import blobs, git
from stages.errors import DataError, InputError
from stages.page.readme import readme as fill
from stages.tables import published
from stages.winds.nowcast import nowcast
from stages.winds.tables import label

ROOT = Path(__file__).parents[1]
FENCE = re.compile(r"(?ms)^```(\w*)\n(.*?)^```")
EXPERIMENTS = ("wind_nowcast", "wind_baselines")
BLOCK = re.compile(r"(?s)<!-- results:([\w-]+) -->\n(.*?)<!-- /results -->")
NUMBER = re.compile(r"(-?\d+\.\d\d)(?: ± (\d+\.\d\d))?(?: \[(-?\d+\.\d\d), (-?\d+\.\d\d)\])?")


# --- commands


def commands(text: str) -> list[list[str]]:
    """The commands of all sh and console blocks as words: without prompts, comments, variables
    set before them and what a pipe follows with."""
    found = []
    for kind, body in FENCE.findall(text):
        if kind not in ("sh", "console", "bash", "shell"):
            continue
        lines = body.replace("\\\n", " ").splitlines()
        for line in [x[2:] for x in lines if x.startswith("$ ")] if kind == "console" else lines:
            lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
            lexer.whitespace_split = True
            command: list[str] = []
            for word in [*lexer, ";"]:
                if set(word) <= set("|&;"):
                    found += [command] if command else []
                    command = []
                elif command or not re.match(r"[A-Z_]+=", word):
                    command.append(word)
    return found


def ours(text: str) -> list[list[str]]:
    return [words for words in commands(text) if words[0].rpartition("/")[2] == "tradewind"]


def lines_not_understood(text: str, root: Path) -> list[str]:
    """Commands of ours that the command line refuses, and points that are none."""
    wrong = []
    for words in ours(text):
        try:
            given = cli.parser().parse_args(words[1:])
            for point in getattr(given, "at", None) or []:
                nowcast.parse(point)
        except (SystemExit, InputError):
            wrong.append(" ".join(words))
    return wrong


def numbers_not_published(text: str, root: Path) -> list[str]:
    """Arguments of `tradewind audit` that no metrics.json holds."""
    wrong = []
    for metric in [
        cli.parser().parse_args(words[1:]).metric for words in ours(text) if words[1] == "audit"
    ]:
        experiment, profile, dataset, cell, *path = metric.split("/")
        table = root / "reports" / experiment / profile / "metrics.json"
        cells = json.loads(table.read_text(encoding="utf-8"))["cells"] if table.exists() else {}
        found = cells.get(f"{dataset}/{cell}", {})
        for key in path if len(path) > 1 else ("metrics", *path):
            found = found.get(key, {})
        if "value" not in found:
            wrong.append(metric)
    return wrong


def targets_not_made(text: str, root: Path) -> list[str]:
    """What follows `make` in a command or between backticks and is no target of the Makefile, no
    variable of it, or no profile."""
    makefile = (root / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"(?m)^([a-z][\w-]*):(?!=)", makefile))
    variables = set(re.findall(r"(?m)^([A-Z]+)\s*\?=", makefile)) | {"TRADEWIND_MIRROR"}
    profiles = set(YAML(typ="safe", pure=True).load(root / "params.yaml")["profiles"])
    prose = [shlex.split(code) for code in re.findall(r"`([^`\n]+)`", FENCE.sub("", text))]
    wrong = []
    for words in commands(text) + [words for words in prose if words]:
        while words and re.match(r"[A-Z_]+=", words[0]):
            words = words[1:]
        for word in words[1:] if words and words[0] == "make" else []:
            name, is_set, value = word.partition("=")
            known = (
                name in variables and (name != "PROFILE" or value in profiles)
                if is_set
                else name in targets or name.startswith("-")
            )
            wrong += [] if known else [f"make {word}"]
    return wrong


def links_that_lead_nowhere(text: str, root: Path) -> list[str]:
    """Files and pictures named by links that are not in the project."""
    links = [
        link.partition("#")[0]
        for link in re.findall(r"\]\(([^)\s]+)\)", text)
        if not link.startswith(("https://", "mailto:", "#"))
    ]
    return [link for link in links if not (root / link).exists()]


def left_blank(text: str, root: Path) -> list[str]:
    """Lines that are one word in capitals: places where something is still to be filled in."""
    return re.findall(r"(?m)^[A-Z][A-Z_]{4,}$", text)


# --- numbers


def tables(block: str) -> list[tuple[str, list[str], list[list[str]]]]:
    """(line above, titles, rows of cells) of each Markdown table of a block."""
    found, above, lines = [], "", []
    for line in [*block.splitlines(), ""]:
        if line.startswith("|"):
            lines.append([cell.strip().strip("*`") for cell in line.strip().strip("|").split("|")])
        elif lines:
            found.append((above, lines[0], lines[2:]))
            above, lines = "", []
        elif line.strip():
            above = line
    return found


def row_problems(
    titles: list[str], row: list[str], arm: dict, base: dict | None, best: dict | None = None
) -> list[str]:
    """Where a row says another number than its arm's metrics: RMSE with spread and interval, its
    share of the hour average's, and of it the optimum's share."""
    rmse, wrong = arm["metrics"]["rmse_component_kn"], []
    for title, cell in zip(titles[1:], row[1:], strict=True):
        if title == "RMSE per component [kn]":
            said = NUMBER.fullmatch(cell)
            for part, value in zip(
                ("mean", "std", "low", "high"), said.groups() if said else ("?",) * 4, strict=True
            ):
                expected = f"{rmse[part]:.2f}" if part in rmse else None
                if value != expected and not (value is None and part in ("low", "high")):
                    wrong.append(f"{row[0]}: {part} {value}, metrics.json {expected}")
        elif title == "against the hour average":
            expected = (
                f"{100 * (rmse['mean'] / base['metrics']['rmse_component_kn']['mean'] - 1):+.0f} %"
                if base
                else "–"
            )
            wrong += (
                []
                if cell == expected
                else [f"{row[0]}: {cell} against the hour average, metrics.json {expected}"]
            )
        elif title == "of the optimum [%]":
            expected = (
                f"{100 * best['metrics']['rmse_component_kn']['mean'] / rmse['mean']:.1f}"
                if best
                else "–"
            )
            wrong += (
                []
                if cell == expected
                else [f"{row[0]}: {cell} of the optimum, metrics.json {expected}"]
            )
        elif not title.startswith("printed") and re.search(r"\d", cell):
            wrong.append(f"{row[0]}: nothing is known of the column {title!r}")
    return wrong


def caption_problems(caption: str, dataset: str, arms: dict) -> list[str]:
    """Where the line above a table says other points or another noise floor than metrics.json."""
    metrics = [arm["metrics"] for name, arm in arms.items() if name.startswith(dataset + "/")]
    points = {f"{m['rmse_component_kn']['n']:,}" for m in metrics}
    floors = {
        f"{m['noise_floor_component_kn']['mean']:.2f}"
        for m in metrics
        if "noise_floor_component_kn" in m
    }
    said = (
        set(re.findall(r"([\d,]+) held-out points", caption)),
        set(re.findall(r"noise (?:floor )?(\d+\.\d\d) kn", caption)),
    )
    return [
        f"{dataset}: {found} above the table, metrics.json {expected}"
        for found, expected in zip(said, (points, floors), strict=True)
        if found != expected
    ]


def beaten(arms: dict) -> set[str]:
    """GEN with an operator of table C.10 that errs more than with another one on the same data:
    README tells the best alone."""
    errors = {
        name: arm["metrics"]["rmse_component_kn"]["mean"]
        for name, arm in arms.items()
        if "/gen-message_" in name
    }
    return {
        name
        for name, error in errors.items()
        if any(
            error > other
            for one, other in errors.items()
            if one.split("/")[0] == name.split("/")[0]
        )
    }


def numbers_not_measured(text: str, root: Path) -> list[str]:
    """What the tables between `<!-- results:PROFILE -->` and `<!-- /results -->` say and
    metrics.json does not, and arms left out."""
    wrong = [] if BLOCK.search(text) else ["there is no results block"]
    for profile, block in BLOCK.findall(text):
        known, seen = {}, {experiment: [] for experiment in EXPERIMENTS}
        for experiment in EXPERIMENTS:
            file = root / "reports" / experiment / profile / "metrics.json"
            if file.exists():
                arms = json.loads(file.read_text(encoding="utf-8"))["arms"]
                known[experiment] = {label(name): arm for name, arm in arms.items()}
            elif experiment == EXPERIMENTS[0]:
                wrong.append(f"{profile}: there is no {file.relative_to(root)}")
        for caption, titles, rows in tables(block) if EXPERIMENTS[0] in known else []:
            named = re.match(r"\*(\w+), ([^,*]+)(?:, ([^*]+))?\*:", caption)
            if not named or named[1] != profile or (named[3] or EXPERIMENTS[0]) not in known:
                wrong.append(f"{profile}: a table without '*{profile}, DATASET*:' above it")
                continue
            dataset, experiment = named[2], named[3] or EXPERIMENTS[0]
            arms = known[experiment]
            wrong += caption_problems(caption, dataset, arms)
            base, best = (arms.get(f"{dataset}/{name}") for name in ("hour_average", "optimum"))
            for row in rows:
                name = f"{dataset}/{row[0]}"
                seen[experiment].append(name)
                wrong += (
                    row_problems(titles, row, arms[name], base, best)
                    if name in arms
                    else [f"{name} was not measured"]
                )
        wrong += [
            f"{profile}: {name} is not told"
            for experiment, arms in known.items()
            for name in sorted(set(arms) - set(seen[experiment]) - beaten(arms))
        ]
    return wrong


CHECKS = (
    lines_not_understood,
    numbers_not_published,
    targets_not_made,
    links_that_lead_nowhere,
    left_blank,
    numbers_not_measured,
)


# --- the project's README


@pytest.fixture(scope="module")
def readme() -> str:
    path = ROOT / "README.md"
    assert path.exists(), (
        "README.md is missing: it tells what this is, the two commands and the numbers to expect"
    )
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def committed(tmp_path_factory) -> Path:
    """The commit's tables beside the working copy's other files: README's numbers are the commit's,
    and another processor's may differ from them (`tradewind compare` judges those). Without git,
    the working copy itself."""
    listed = git(ROOT, "ls-tree", "-r", "HEAD", "--", "reports")
    if not listed:
        return ROOT
    root = tmp_path_factory.mktemp("committed")
    for entry in ROOT.iterdir():
        if entry.name != "reports":
            (root / entry.name).symlink_to(entry)
    names = {
        path: about.split()[2]
        for about, _, path in (line.partition("\t") for line in listed.splitlines())
    }
    contents = blobs(ROOT, set(names.values()))
    for path, name in names.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(contents[name])
    return root


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_readme_says_nothing_that_is_not_so(readme, committed, check):
    assert check(readme, committed) == []


def test_the_readme_shows_the_two_commands_and_every_verb_and_the_nowcast_first(readme):
    assert {tuple(words[:2]) for words in commands(readme)} >= {("make", "repro"), ("make", "test")}
    verbs = [words[1] for words in ours(readme)]
    known = next(action.choices for action in cli.parser()._actions if action.dest == "verb")
    assert verbs[0] == "nowcast" and set(verbs) == set(known)
    assert "mini" in [profile for profile, _ in BLOCK.findall(readme)]


def test_printed_values_in_the_readme_are_those_of_the_transcriptions(readme, monkeypatch):
    monkeypatch.chdir(ROOT)
    for caption, titles, rows in [
        table for _, block in BLOCK.findall(readme) for table in tables(block)
    ]:
        experiment = "wind_baselines" if "wind_baselines" in caption else "wind_nowcast"
        printed = {label(arm): values for arm, values in published.companions(experiment).items()}
        at = next(i for i, title in enumerate(titles) if title.startswith("printed"))
        assert {row[0]: row[at] for row in rows} == {
            row[0]: published.shown(printed.get(row[0], [])) for row in rows
        }


# --- the checks find what is planted

GOOD = """# Wind
`make repro` and `TRADEWIND_MIRROR=x make repro PROFILE=sample JOBS=2`, or `make`, [how](Makefile) \
and [why](https://example.org/nothing).
```console
$ tradewind nowcast --context x.csv \\
    --at 46.5,7.2,34000,2026-01-17T05:00:00Z | head -3  # first rows
tradewind said nothing that can be parsed
```
```sh
OMP_NUM_THREADS=1 .venv/bin/tradewind audit wind_nowcast/mini/sim/knn/nse && make test
```
<!-- results:mini -->
*mini, sim*: 3,210 held-out points, sensor noise 2.50 kn

| model | RMSE per component [kn] | against the hour average | printed in the thesis [kn] |
| --- | ---: | ---: | --- |
| hour_average | 20.00 [18.00, 22.00] | +0 % | – |
| **knn** | 9.99 ± 0.50 [9.00, 11.00] | -50 % | 7.57–9.86 (thesis 1.2, 3 days) |

<!-- /results -->
"""


@pytest.fixture
def project(tmp_path):
    """A folder with the real Makefile and params.yaml, and metrics of two arms."""
    for name in ("Makefile", "params.yaml"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())

    def arm(floor, **rmse):
        return {"seeds": 1, "metrics": {"rmse_component_kn": {**rmse, "n": 3210}, **floor}}

    arms = {
        "sim/hour_average": arm({}, mean=20.0, low=18.0, high=22.0),
        "sim/knn": arm(
            {"noise_floor_component_kn": {"mean": 2.5}}, mean=9.9901, std=0.4999, low=9.0, high=11.0
        ),
    }
    home = tmp_path / "reports/wind_nowcast/mini"
    home.mkdir(parents=True)
    (home / "metrics.json").write_text(
        json.dumps({"arms": arms, "cells": {"sim/knn": {"metrics": {"nse": {"value": 0.5}}}}})
    )
    return tmp_path


def test_a_readme_that_is_right_passes_every_check(project):
    assert {check.__name__: check(GOOD, project) for check in CHECKS} == {
        check.__name__: [] for check in CHECKS
    }
    assert [words[0] for words in commands(GOOD)] == [
        "tradewind",
        "head",
        ".venv/bin/tradewind",
        "make",
    ]


@pytest.mark.parametrize(
    "check, right, wrong, told",
    [
        (lines_not_understood, "--context x.csv", "--capture x.csv", "--capture"),
        (lines_not_understood, "nowcast", "forecast", "forecast"),
        (lines_not_understood, "46.5,7.2,34000,", "46.5,7.2,", "46.5,7.2,2026"),
        (lines_not_understood, "46.5,7.2", "146.5,7.2", "146.5"),
        (numbers_not_published, "sim/knn/nse", "sim/knn/rmse", "sim/knn/rmse"),
        (numbers_not_published, "sim/knn/nse", "sim/knm/nse", "knm"),
        (numbers_not_published, "wind_nowcast/mini/sim", "wind_nowcast/full/sim", "full"),
        (targets_not_made, "make test", "make tests", "tests"),
        (targets_not_made, "`make repro`", "`make results`", "results"),
        (targets_not_made, "PROFILE=sample", "PROFILE=simple", "PROFILE=simple"),
        (targets_not_made, "JOBS=2", "JOB=2", "JOB=2"),
        (links_that_lead_nowhere, "(Makefile)", "(docs/how.md#there)", "docs/how.md"),
        (left_blank, "# Wind\n", "# Wind\n\nFINDINGS\n\n", "FINDINGS"),
        (numbers_not_measured, "20.00 [", "20.01 [", "mean 20.01"),
        (numbers_not_measured, "± 0.50", "± 0.51", "std 0.51"),
        (numbers_not_measured, " ± 0.50", "", "std None"),
        (numbers_not_measured, "11.00]", "11.10]", "high 11.10"),
        (numbers_not_measured, "[18.00", "[17.99", "low 17.99"),
        (numbers_not_measured, "-50 %", "-51 %", "-51 %"),
        (numbers_not_measured, "9.99 ± 0.50 [9.00, 11.00]", "about 10", "mean ?"),
        (numbers_not_measured, "| **knn**", "| knn2", "sim/knn2 was not measured"),
        (numbers_not_measured, "| **knn**", "| knn2", "sim/knn is not told"),
        (numbers_not_measured, "3,210", "3,211", "3,211"),
        (numbers_not_measured, "2.50 kn", "2.40 kn", "2.40"),
        (numbers_not_measured, ", sensor noise 2.50 kn", "", "2.50"),
        (numbers_not_measured, "*mini, sim*:", "*mini, other*:", "other/knn"),
        (numbers_not_measured, "*mini, sim*:", "All:", "without"),
        (numbers_not_measured, "results:mini", "results:full", "full/metrics.json"),
        (numbers_not_measured, "RMSE per component", "RMSE", "column"),
        (numbers_not_measured, "<!-- results:mini -->\n", "", "no results block"),
    ],
)
def test_a_planted_mistake_is_told(project, check, right, wrong, told):
    assert right in GOOD
    assert any(told in problem for problem in check(GOOD.replace(right, wrong, 1), project))


def test_an_empty_results_block_tells_every_arm_that_it_leaves_out(project):
    assert numbers_not_measured("<!-- results:mini -->\n<!-- /results -->", project) == [
        "mini: sim/hour_average is not told",
        "mini: sim/knn is not told",
    ]


# --- the blocks as they are made


@pytest.fixture
def filled(project, monkeypatch):
    """README.md of the hand-made project after its block was filled; the working folder."""
    monkeypatch.chdir(project)
    (project / "data").mkdir()
    (project / "data/published").symlink_to(ROOT / "data/published")
    (project / "reports/wind_nowcast/companions.csv").write_bytes(
        (ROOT / "reports/wind_nowcast/companions.csv").read_bytes()
    )
    path = project / "README.md"
    path.write_text(BLOCK.sub("<!-- results:mini -->\n<!-- /results -->", GOOD))
    fill(path)
    return path


def test_a_filled_block_passes_the_checks_and_nothing_else_is_touched(filled, project):
    text = filled.read_text()
    assert {check.__name__: check(text, project) for check in CHECKS} == {
        check.__name__: [] for check in CHECKS
    }
    assert BLOCK.sub("", text) == BLOCK.sub("", GOOD)
    assert "| knn | 9.99 ± 0.50 [9.00, 11.00] | -50 % | 7.57–9.86 (thesis 1.2, 3 days) |" in text


def test_filling_again_gives_the_same_bytes_and_new_numbers_replace_the_old(filled, project):
    before = filled.read_bytes()
    fill(filled)
    assert filled.read_bytes() == before
    metrics = project / "reports/wind_nowcast/mini/metrics.json"
    metrics.write_text(metrics.read_text().replace("9.9901", "8.0"))
    assert numbers_not_measured(filled.read_text(), project) != []
    fill(filled)
    assert (
        numbers_not_measured(filled.read_text(), project) == [] and "9.99" not in filled.read_text()
    )


def test_a_readme_without_a_block_is_an_error_and_stays_as_it_was(filled):
    filled.write_text("# Wind\n")
    with pytest.raises(DataError, match="results:PROFILE"):
        fill(filled)
    assert filled.read_text() == "# Wind\n"
