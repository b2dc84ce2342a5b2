"""The chains of all numbers as data for the page: table <- evaluation <- checkpoint <- prepared <-
validated <- decoded <- raw files.

Everything is read from the records in git. `chains` gives {"spine": {PROFILE: {DATASET: {STAGE:
node}}}, "runs": {EXPERIMENT/PROFILE: ...}}; `node` says what stands in each. Raw files carry
licence and source. Of a stage of many files the first FEW stand in it; its record, whose place
follows from its name, has them all. Paths are the project's; sizes in bytes.
"""

import glob
import os
from pathlib import Path
from typing import Any

from stages import records
from stages.files import read_json
from stages.page.blocks import Part
from stages.tables.table import datasets_of

SPINE = ("acquire", "decode", "prepare", "validate", "contexts")
FEW = 60  # files of a stage that stand in the page
OWN = "MIT, as the project"  # what is simulated here
CODE = 16  # digits of a code digest


def node(
    record: dict[str, Any], endings: tuple[str, ...] = ("",), few: int = FEW
) -> dict[str, Any]:
    """What a record says of its stage: code, number and bytes of all outputs, and the first `few`
    of those with one of the endings.

    {"code", "n", "bytes", "at": their folder, "files": [[path below it, bytes, sha256], ...]}.
    """
    outputs = sorted(record["outputs"].items())
    told = [one for one in outputs if one[0].endswith(endings)][:few] or outputs[:few]
    at = os.path.commonpath([os.path.dirname(name) for name, _ in told]) if told else ""
    made = {
        "code": record["code"]["digest"][:CODE],
        "n": len(outputs),
        "bytes": sum(one["bytes"] for _, one in outputs),
        "at": at,
        "files": [[os.path.relpath(name, at), one["bytes"], one["sha256"]] for name, one in told],
    }
    return made | ({"seed": record["seed"]} if record.get("seed") is not None else {})


def source(record: dict[str, Any]) -> dict[str, Any]:
    """Where raw files come from, by name: [licence, source]; '' stands for every file that has
    no line of its own."""
    asked = record.get("params", {}).get("dataset") or {}
    if asked.get("files"):
        return {
            name: [one.get("licence") or "not stated", one.get("url") or "not stated"]
            for name, one in asked["files"].items()
        }
    if asked.get("listed"):
        return {
            "": [
                asked["listed"].get("licence") or "not stated",
                asked["listed"].get("base") or "not stated",
            ]
        }
    return {
        "": [OWN, f"made here by stages/acquisition ({asked['kind']}), seeded"]
        if asked.get("kind")
        else ["not recorded", "not recorded"]
    }


def spine(profile: str, datasets: list[str]) -> dict[str, Any]:
    """For data sets of a profile: their stages before any experiment, each a node; {} where no
    record is."""
    found: dict[str, Any] = {}
    for file in sorted((Path("data") / profile / "records").glob("*.json")):
        dataset, _, stage = file.stem.rpartition(".")
        if stage in SPINE and dataset in datasets:
            record = read_json(file)
            found.setdefault(dataset, {})[stage] = node(record) | (
                {"from": source(record)} if stage == "acquire" else {}
            )
    return found


def nodes(home: Path, dataset: str, kind: str, endings: tuple[str, ...]) -> dict[str, Any]:
    """The records of one kind (train, sweep) of a data set as nodes, by cell or model."""
    files = sorted(home.glob(f"{glob.escape(dataset)}.*.{kind}.json"))
    return {
        file.name.removeprefix(f"{dataset}.").removesuffix(f".{kind}.json"): node(
            read_json(file), endings
        )
        for file in files
    }


def runs(experiment: str, profile: str, content: dict[str, Any], part: Part) -> dict[str, Any]:
    """The part of the chains that an experiment adds in a profile: its table, evaluations,
    checkpoints and the main numbers.

    Per data set: `e` evaluation, `c` cell -> training, `s` model -> sweep, `a` arms, `say` arm ->
    words, `m` arm -> [address, value].
    """
    table = records.location("tabulate", profile, experiment=experiment)
    found: dict[str, Any] = {}
    for dataset in datasets_of(content["arms"]):
        evaluation = records.location("evaluate", profile, dataset, experiment=experiment)
        found[dataset] = {
            "e": node(read_json(evaluation), (".json",), 3),
            "c": nodes(table.parent, dataset, "train", (".safetensors",)),
            "s": nodes(table.parent, dataset, "sweep", ("",)),
            "a": [name.split("/")[1] for name in content["arms"] if name.split("/")[0] == dataset],
            "say": part.labels.get(dataset, {}),
            "m": {
                one.arm: [one.address, f"{one.measure}: {one.value}"]
                for one in part.results
                if one.dataset == dataset
            },
        }
    return {"t": node(read_json(table), (".json", ".md")), "d": found}


def chains(experiment: str, profile: str, content: dict[str, Any], part: Part) -> dict[str, Any]:
    """The chains behind every table of an experiment's page; `content` is its metrics.json."""
    return {
        "spine": {profile: spine(profile, datasets_of(content["arms"]))},
        "runs": {f"{experiment}/{profile}": runs(experiment, profile, content, part)},
    }
