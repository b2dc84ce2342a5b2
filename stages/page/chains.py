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
from stages.neighbours.experiment import results as searches
from stages.neighbours.experiment import tables as search_tables
from stages.page.results import Result
from stages.sequences.reporting import results as order_results
from stages.sequences.reporting import tables as order_tables
from stages.winds import tables

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


def spine(profile: str) -> dict[str, Any]:
    """For every data set of a profile: its stages before any experiment, each a node; {} where
    no record is."""
    found: dict[str, Any] = {}
    for file in sorted((Path("data") / profile / "records").glob("*.json")):
        dataset, _, stage = file.stem.rpartition(".")
        if stage in SPINE and dataset:
            record = read_json(file)
            found.setdefault(dataset, {})[stage] = node(record) | (
                {"from": source(record)} if stage == "acquire" else {}
            )
    return found


def labels(experiment: str, content: dict[str, Any], dataset: str) -> dict[str, str]:
    """Arm -> what the tables call it, where that is another word than its name."""
    mine = [name.split("/")[1] for name in content["arms"] if name.split("/")[0] == dataset]
    if experiment in order_results.EXPERIMENTS:
        called = {arm: order_tables.called(arm) for arm in mine}
    elif experiment == searches.EXPERIMENT:
        k = max(
            (int(arm.rpartition("-k")[2]) for arm in mine if arm.startswith("linear-")), default=0
        )
        called = {f"{method}-aniso-k{k}": words for method, words in search_tables.METHODS.items()}
        called |= {
            f"trajectory-{one}_bound-k{k}": f"TNN, the {one}'s bound alone"
            for one in ("segment", "box")
        }
        trees = ((arm, search_tables.LEAVES.fullmatch(arm.removesuffix(f"-k{k}"))) for arm in mine)
        called |= {
            arm: f"k-d tree, {found[2]}, leaves of {found[3]}" for arm, found in trees if found
        }
    else:
        called = {arm: tables.label(arm) for arm in mine}
    return {arm: words for arm, words in called.items() if arm in mine and words != arm}


def runs(
    experiment: str, profile: str, content: dict[str, Any], results: list[Result]
) -> dict[str, Any]:
    """The part of the chains that an experiment adds in a profile: its table, evaluations,
    checkpoints and the main numbers.

    Per data set: `e` evaluation, `c` cell -> training, `s` model -> sweep, `a` arms, `say` arm ->
    words, `m` arm -> [address, value].
    """
    home = records.location("tabulate", profile, experiment=experiment).parent
    found: dict[str, Any] = {}
    for dataset in tables.datasets_of(content["arms"]):
        of = lambda kind, endings, dataset=dataset: {  # noqa: E731
            file.name.removeprefix(dataset + ".").removesuffix(f".{kind}.json"): node(
                read_json(file), endings
            )
            for file in sorted(home.glob(f"{glob.escape(dataset)}.*.{kind}.json"))
        }
        evaluation = records.location("evaluate", profile, dataset, experiment=experiment)
        found[dataset] = {
            "e": node(read_json(evaluation), (".json",), 3),
            "c": of("train", (".safetensors",)),
            "s": of("sweep", ("",)),
            "a": [name.split("/")[1] for name in content["arms"] if name.split("/")[0] == dataset],
            "say": labels(experiment, content, dataset),
            "m": {
                one.arm: [one.address, f"{one.measure}: {one.value}"]
                for one in results
                if one.dataset == dataset
            },
        }
    return {
        "t": node(
            read_json(records.location("tabulate", profile, experiment=experiment)),
            (".json", ".md"),
        ),
        "d": found,
    }


def chains(views: list[dict[str, Any]]) -> dict[str, Any]:
    """The chains behind every table of these views; `views` hold experiment, profile, content
    (metrics.json) and results."""
    return {
        "spine": {
            profile: spine(profile) for profile in dict.fromkeys(view["profile"] for view in views)
        },
        "runs": {
            f"{view['experiment']}/{view['profile']}": runs(
                view["experiment"], view["profile"], view["content"], view["results"]
            )
            for view in views
        },
    }
