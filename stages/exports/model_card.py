"""A model card, in Markdown, for any trained cell: what it is, what it learned from and how well,
what it is not for, how to check it.

All is told by the records and tables in git. An address is EXPERIMENT/PROFILE/DATASET/CELL, as in
the audit without the metric. A model that was promoted by scheduled retraining is told from its
line in reports/ledger.jsonl too: by which numbers, against whom, on what.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stages.audit.chain import Node
from stages.errors import DataError, InputError
from stages.exports import checks, citation, hub
from stages.exports.tree import Tree, of_commit
from stages.page import promotions
from stages.params import nearest

LEDGER = "reports/ledger.jsonl"
SHOWN = 60  # numbers in the table of evaluation
STATED = re.compile(r"(?ms)^\*\*Limits\.\*\*(.*?)(?=^\s*$|\Z)")  # in an experiment's README
LIMITS = (
    "It is an experiment on a benchmark problem, trained small; the documents' own sizes and "
    "budgets are larger where the report says so. Its numbers hold for data drawn as its test set "
    "was."
)
AUDITED = re.compile(r"tradewind audit ([^/\s]+)/")


def card(address: str, root: Path = Path(".")) -> str:
    """The card of a trained cell of the commit. InputError for an address that no training
    record has."""
    tree, parts = of_commit(root), address.strip("/").split("/")
    known = {name_of(node): node for node in checks.read(tree) if node.stage in ("train", "sweep")}
    name = "/".join(parts)
    if len(parts) != 4 or name not in known:
        raise InputError(
            "there is no such trained cell",
            found=address + nearest(name, known),
            expected="EXPERIMENT/PROFILE/DATASET/CELL",
        )
    entry = next(
        (
            one
            for one in reversed(entries(tree))
            if one.get("kind") == "promoted" and one.get("after") in weights(known[name])
        ),
        None,
    )
    return render(tree, known[name], entry)


def promoted(tree: Tree) -> Iterator[tuple[str, str]]:
    """(number of the entry and digits of the weights, card) of every promotion in the ledger."""
    trained = [node for node in checks.read(tree) if node.stage == "train"]
    for entry in entries(tree):
        if entry.get("kind") == "promoted":
            node = next((node for node in trained if entry["after"] in weights(node)), None)
            name = f"{entry['number']:04d}-{entry['after'][:12]}"
            yield name, render(tree, node, entry) if node else bare(tree, entry)


def entries(tree: Tree) -> list[dict[str, Any]]:
    """The ledger's entries. DataError at the first line that the chain of hashes does not hold."""
    found, previous = [], ""
    for number, line in enumerate(
        tree.files[LEDGER].decode("utf-8", "replace").splitlines() if LEDGER in tree.modes else (),
        1,
    ):
        try:
            entry = json.loads(line)
            own = json.dumps(
                {key: value for key, value in entry.items() if key != "digest"},
                sort_keys=True,
                allow_nan=False,
                ensure_ascii=False,
            )
            if (entry["number"], entry["previous"], entry["digest"]) != (
                number,
                previous,
                promotions.sha256(own),
            ):
                raise ValueError("it is not what was written")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataError(
                "the ledger is broken", where=f"{LEDGER}, line {number}", found=str(error)
            ) from None
        found.append(entry)
        previous = promotions.sha256(line)
    return found


def name_of(node: Node) -> str:
    """The address of a cell."""
    _, experiment, profile, _, dataset, cell = node.homes[0].split("/")
    return f"{experiment}/{profile}/{dataset}/{cell}"


def weights(node: Node) -> set[str]:
    """The SHA-256 of a cell's weights."""
    return {
        described["sha256"]
        for path, described in node.record["outputs"].items()
        if path.endswith(".safetensors")
    }


def render(tree: Tree, node: Node, entry: dict[str, Any] | None) -> str:
    """The card of a trained cell."""
    experiment, profile, dataset, cell = name_of(node).split("/")
    model = str(node.record["params"].get("model", cell))
    numbers = numbers_of(tree, experiment, profile, dataset, cell)
    lines = [
        *hub.header(name_of(node), citation.licence({}), model, numbers),
        f"# Model card: {name_of(node)}",
        "",
        f"Of commit {tree.commit.name}, {tree.commit.date}.",
        "",
        "## What it is",
        "",
        *identity(tree, node, cell),
        "## Intended use",
        "",
        (
            "Research: comparison of models on the same data under the same protocol, and the "
            "audit of published numbers."
        ),
        "",
        "## Not intended",
        "",
        *limits(tree, experiment),
        "",
        "## Data",
        "",
        *data(tree, node, profile, dataset),
        "",
        *training(node),
        *evaluation(tree, experiment, profile, dataset, cell),
        *(against(entry) if entry else []),
        "## How to check",
        "",
        "    tradewind audit "
        + first_number(tree, experiment, profile, dataset, cell)
        + " --verify eval",
        "",
        (
            "re-hashes every file behind the number and computes it again from these weights; "
            "`--verify train` trains again."
        ),
        "Exit status: 0 PASS, 1 FAIL, 3 INCONCLUSIVE.",
        "",
    ]
    return "\n".join(lines)


def limits(tree: Tree, experiment: str) -> list[str]:
    """What a model of an experiment is not for, as the experiment's README states it; else what
    holds for every one of ours."""
    path = f"reports/{experiment}/README.md"
    text = tree.files[path].decode("utf-8", "replace") if path in tree.modes else ""
    stated = [" ".join(found.split()) for found in STATED.findall(text)]
    return [f"- {found}" for found in stated or (LIMITS,)]


def identity(tree: Tree, node: Node, cell: str) -> list[str]:
    """Its model, its files, its licence and authors."""
    record, params = node.record, node.record["params"]
    return [
        (
            f"- Model `{params.get('model', cell)}`, arm `{params.get('arm', 'plain')}`, size "
            f"`{params.get('size', 'none')}`, seed {record['seed']}."
        ),
        f"- Arguments: {inline(params.get('arguments', {}))}",
        *(
            f"- `{path}`, {described['bytes']:,} bytes, SHA-256 `{described['sha256']}`"
            for path, described in sorted(record["outputs"].items())
        ),
        (
            f"- Licence: {citation.licence({})}, as the project's; the data keep their own "
            f"(below). Authors: {', '.join(citation.authors(tree, {}))}."
        ),
        "",
    ]


def training(node: Node) -> list[str]:
    """How it was trained: parameters, code and environment, as its record tells them."""
    record, params = node.record, node.record["params"]
    return [
        "## Training",
        "",
        *(
            f"- {key}: {inline(params[key])}"
            for key in sorted(params)
            if key not in ("arguments", "arm", "model", "size")
        ),
        (
            f"- Code digest `{record['code']['digest']}` over {len(record['code']['files'])} "
            f"files; environment: {inline(record['environment'])}"
        ),
        (
            "- Durations are kept out of records (they differ from run to run); "
            "`.work/durations.jsonl` of the machine has them."
        ),
        "",
    ]


def data(tree: Tree, node: Node, profile: str, dataset: str) -> list[str]:
    """What it learned from: prepared files, raw set, licence, period or split as far as the
    records tell."""
    lines = [
        f"- read `{path}`, {described['bytes']:,} bytes, SHA-256 `{described['sha256']}`"
        for path, described in sorted(node.record["inputs"].items())
        if path.startswith("data/")
    ]
    prepare, acquire = (
        tree.homes.get(f"data/{profile}/{place}/{dataset}") for place in ("prepared", "raw")
    )
    if prepare and not prepare.error:
        lines.append(f"- prepared with {inline(prepare.record['params'])}")
    if acquire and not acquire.error:
        outputs = acquire.record["outputs"].values()
        plan = {
            key: value
            for key, value in citation.asked(acquire).items()
            if value and key not in ("files", "entry", "kind")
        }
        licences = ", ".join(citation.licence_of(acquire, tree))
        size = sum(one["bytes"] for one in outputs)
        origin = (
            f", simulated by us with {inline(plan)}"
            if citation.ours(acquire)
            else f"; see `release/croissant/{profile}/{dataset}.json` of a release"
        )
        lines.append(
            f"- raw set `{profile}/{dataset}`: {len(outputs)} files, {size:,} bytes, licence "
            f"{licences}{origin}"
        )
    judged = f"data/{profile}/validated/{dataset}.json"
    if judged in tree.modes:
        verdict = tree.json(judged)
        lines.append(
            f"- gate: {'passed' if verdict.get('success') else 'FAILED'}, "
            f"{len(verdict.get('expectations', ()))} expectations (`{judged}`)"
        )
    return lines


def evaluation(tree: Tree, experiment: str, profile: str, dataset: str, cell: str) -> list[str]:
    """Its numbers with their intervals, and those of the trivial baselines beside them."""
    table = f"reports/{experiment}/{profile}/metrics.json"
    numbers = numbers_of(tree, experiment, profile, dataset, cell)
    lines = [
        "## Evaluation",
        "",
        f"On the test split, from `{table}`:",
        "",
        "| metric | value | 90 % interval | n | unit |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name in sorted(numbers)[:SHOWN]:
        one = numbers[name] if isinstance(numbers[name], dict) else {"value": numbers[name]}
        interval = f"[{one['low']:.6g}, {one['high']:.6g}]" if "low" in one else "–"
        lines.append(
            f"| {name} | {one.get('value', float('nan')):.6g} | {interval} | {one.get('n', '–')} | "
            f"{one.get('unit', '')} |"
        )
    more = len(numbers) - SHOWN
    return (
        [
            *lines,
            "",
            f"{more} more numbers stand there, by altitude, lead and so on."
            if more > 0
            else "All that was measured.",
            "",
        ]
        if numbers
        else [
            "## Evaluation",
            "",
            f"`{table}` holds no number of this cell alone; see the report.",
            "",
        ]
    )


def numbers_of(
    tree: Tree, experiment: str, profile: str, dataset: str, cell: str
) -> dict[str, Any]:
    """What the table in git tells of a cell, by name; nothing where it tells nothing."""
    table = f"reports/{experiment}/{profile}/metrics.json"
    cells = tree.json(table).get("cells", {}) if table in tree.modes else {}
    return (cells.get(f"{dataset}/{cell}") or {}).get("metrics") or {}


def first_number(tree: Tree, experiment: str, profile: str, dataset: str, cell: str) -> str:
    """The address of the number that a reader asks for first."""
    numbers = numbers_of(tree, experiment, profile, dataset, cell) or {"METRIC": None}
    chosen = "rmse_component_kn" if "rmse_component_kn" in numbers else sorted(numbers)[0]
    return f"{experiment}/{profile}/{dataset}/{cell}/{chosen}"


def against(entry: dict[str, Any]) -> list[str]:
    """Champion against predecessor, from the ledger."""
    errors = entry.get("rmse_component_kn") or {}
    by = entry.get("difference_kn")
    chosen = entry.get("evaluation") or {}
    told = (
        f"{by['value']:+.2f} kn, 90 % interval [{by['low']:+.2f}, {by['high']:+.2f}]"
        if by
        else "not measured"
    )
    return [
        "## Champion against predecessor",
        "",
        (
            f"- Promoted by entry {entry['number']} of the ledger, {entry['time']}, "
            f"commit {entry.get('commit') or 'unknown'}."
        ),
        (
            f"- RMSE per component on the same {chosen.get('slices', 'unknown')} slices: "
            f"{errors.get('challenger', 'unknown')} kn, {entry.get('against') or 'nobody'} "
            f"{errors.get('against', 'unknown')} kn; difference {told}."
        ),
        (
            f"- Before: `{entry.get('before') or 'no champion'}`; raw data "
            f"`{entry.get('raw', '')}`; drift "
            f"{(entry.get('drift') or {}).get('state', 'not measured')}."
        ),
        *(f"- {reason}" for reason in entry.get("reasons", ())),
        "",
    ]


def bare(tree: Tree, entry: dict[str, Any]) -> str:
    """The card of a champion whose training record has given way to a later one."""
    audited = AUDITED.search(" ".join(map(str, entry.get("recheck", ()))))
    experiment = audited[1] if audited else ""
    return "\n".join(
        [
            f"# Model card: champion {entry['after'][:12]}",
            "",
            f"Of commit {tree.commit.name}, {tree.commit.date}.",
            "",
            "## What it is",
            "",
            (
                f"- Weights of SHA-256 `{entry['after']}`, kept by DVC in the store of champions; "
                f"reference.json `{entry.get('reference', '')}`."
            ),
            (
                f"- Its training record is not of this commit any more; "
                f"`git log {entry.get('commit', '')[:12]}..` of reports/ledger.jsonl leads to it."
            ),
            "",
            *against(entry),
            "## Not intended",
            "",
            *limits(tree, experiment),
            "",
            "## How to check",
            "",
            "    tradewind ledger --verify",
            "",
        ]
    )


def inline(value: Any) -> str:
    """A value as code in a line."""
    return f"`{json.dumps(value, sort_keys=True, ensure_ascii=False)}`"
