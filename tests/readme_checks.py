"""What a README says, held against the project: commands, numbers, targets, links, tables."""

import json
import re
import shlex
from pathlib import Path

from ruamel.yaml import YAML

from stages import cli
from stages.errors import InputError
from stages.tables import parts
from stages.winds.nowcast import nowcast
from stages.winds.tables import label

ROOT = Path(__file__).parents[1]
FENCE = re.compile(r"(?ms)^```(\w*)\n(.*?)^```")
EXPERIMENTS = ("wind_nowcast", "wind_baselines")
BLOCK = re.compile(r"(?s)<!-- results:([\w-]+)[ \w]* -->\n(.*?)<!-- /results -->")
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
                arms = parts.in_git(file.parent)["arms"]
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
