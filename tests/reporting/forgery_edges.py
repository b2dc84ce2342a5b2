"""Forgeries by someone who knows the audit: records and locks that say less than was declared,
gates, and whatever stands in two places."""

import json
from collections.abc import Callable
from pathlib import Path

from audit_project import DATA, RAW_LOCK, REPORTS, RUN, agree, commit, edit, relock
from forger import EVALUATE, LOCK, TRAIN, Forgery, changed, pinned, put, record, then
from ruamel.yaml import YAML

from stages import records

GATE = f"{DATA}/validated/simulated.json"
DECODE, PREPARE = (f"{DATA}/records/simulated.{name}.json" for name in ("decode", "prepare"))
DECLARED, PAGE = "reports/wind_nowcast/dvc.yaml", "reports/index.html"
HISTORY, BESIDE = f"{RUN}/history.json", f"{DATA}/raw/simulated/frames_02.csv"
SLICES = f"{REPORTS}/evaluated/simulated/slices.parquet"
SCORER = "exec python -m stages.evaluation.evaluate wind_nowcast mini simulated"
WEIGHTS = f"{RUN}/weights.safetensors"


def locked(lock: str, name: str, change: Callable[[dict], None]) -> Callable[[Path], None]:
    """A stage's entry in a lock edited."""

    def work(project: Path) -> None:
        yaml = YAML(typ="safe")
        content = yaml.load((project / lock).read_text())
        change(content["stages"][name])
        with (project / lock).open("w") as stream:
            yaml.dump(content, stream)

    return work


def without(side: str, path: str) -> Callable[[dict], None]:
    """A record, or a lock's entry, that does not name a file."""

    def change(content: dict) -> None:
        if isinstance(content[side], dict):
            del content[side][path]
        else:
            content[side] = [item for item in content[side] if item["path"] != path]

    return change


def gate(**content) -> Callable[[Path], None]:
    """The gate's file says so."""

    def work(project: Path) -> None:
        told = json.loads((project / GATE).read_text())
        (project / GATE).write_text(json.dumps(told | content))

    return work


def observed(project: Path) -> None:
    """The gate observed what it does not allow."""
    edit(project / GATE, '"limit": "at least 1",', '"limit": "at least 11",')


def raw_beside(project: Path) -> None:
    """A raw file more beside the pinned ones; manifest and records tell of it."""
    raw = project / DATA / "raw/simulated"
    (raw / "frames_02.csv").write_text("10.000,0123456789ABCD\n")
    listed = json.loads((raw / "manifest.json").read_text())
    told = records.describe(raw / "frames_02.csv")
    listed["files"]["frames_02.csv"] = listed["files"]["frames_01.csv"] | told
    (raw / "manifest.json").write_text(json.dumps(listed))
    for name, side in (("acquire", "outputs"), ("decode", "inputs")):
        path = f"{DATA}/records/simulated.{name}.json"
        record(path, lambda one, side=side: one[side].update({BESIDE: told}))(project)


NOTHING = {"modules": [], "files": {}, "digest": "0" * 64}
EDGES = (
    Forgery(
        "a record without inputs",
        "record",
        TRAIN,
        f"does not name its input {DATA}/prepared/simulated",
        then(record(TRAIN, lambda one: one.update(inputs={})), relock),
    ),
    Forgery(
        "an evaluation of no weights",
        "record",
        EVALUATE,
        f"does not name its input {WEIGHTS}",
        then(record(EVALUATE, without("inputs", WEIGHTS)), relock),
    ),
    Forgery(
        "a record without outputs",
        "record",
        TRAIN,
        f"does not name its output {RUN}",
        then(record(TRAIN, lambda one: one.update(outputs={})), relock),
    ),
    Forgery(
        "a record without code",
        "record",
        TRAIN,
        "lacks the module stages.training.train",
        then(record(TRAIN, lambda one: one.update(code=NOTHING)), relock),
    ),
    Forgery(
        "a record without parameters",
        "record",
        DECODE,
        "tells none of the parameters in params.yaml",
        then(record(DECODE, lambda one: one.update(params={})), relock),
    ),
    Forgery(
        "a record and a lock that both leave the gate out",
        "record",
        "dvc.lock",
        f"does not have the declared dependency {GATE}",
        then(
            record(PREPARE, without("inputs", GATE)),
            locked("dvc.lock", "prepare", without("deps", GATE)),
            relock,
        ),
    ),
    Forgery(
        "a record of an input that is not declared",
        "record",
        DECODE,
        "which its stage does not declare",
        then(
            record(DECODE, lambda one: one["inputs"].update({GATE: {"sha256": "", "bytes": 0}})),
            agree,
        ),
    ),
    Forgery(
        "a lock without parameters",
        "record",
        RAW_LOCK,
        "does not have the declared parameters of params.yaml",
        then(locked(RAW_LOCK, "acquire", lambda one: one.update(params={})), commit),
    ),
    Forgery("a shut gate", "record", GATE, "it is shut", then(gate(success=False), agree)),
    Forgery(
        "a gate whose warnings are trimmed",
        "record",
        GATE,
        "its warnings are [], by its expectations they are ['rows.few']",
        then(gate(warnings=[]), agree),
    ),
    Forgery(
        "a gate that passes what it does not allow",
        "record",
        GATE,
        "rows.few observed 10.0, which is not at least 11",
        then(observed, agree),
    ),
    Forgery(
        "a gate of other data",
        "record",
        GATE,
        "it judged data/mini/decoded/simulated/winds.parquet as aaaa",
        then(gate(judged={f"{DATA}/decoded/simulated/winds.parquet": "a" * 64}), agree),
    ),
    Forgery(
        "a declared command replaced",
        "record",
        LOCK,
        "dvc.yaml declares `echo`",
        then(changed(DECLARED, SCORER, "echo"), commit),
    ),
    Forgery(
        "a lock of another command",
        "record",
        LOCK,
        f"dvc.yaml declares `{SCORER}`",
        then(changed(LOCK, SCORER, SCORER.replace("wind_nowcast", "sensor_noise")), commit),
    ),
    Forgery(
        "a command that is none of ours, declared and locked",
        "record",
        LOCK,
        "no dvc.lock names a command of ours",
        then(changed(DECLARED, SCORER, "echo"), changed(LOCK, SCORER, "echo"), commit),
    ),
    Forgery(
        "a record of another stage",
        "record",
        TRAIN,
        "it says that its stage is prepare",
        then(record(TRAIN, lambda one: one.update(stage="prepare")), agree),
    ),
    Forgery(
        "a record of another cell",
        "record",
        TRAIN,
        "it says that its cell is knn",
        then(record(TRAIN, lambda one: one.update(cell="knn")), agree),
    ),
    Forgery(
        "edited errors of slices beside a metric as it was, all agreeing",
        "hash",
        SLICES,
        "not the errors of metrics.json",
        then(changed(SLICES, "slices", "edited"), agree),
    ),
    Forgery(
        "an edited history of training, all agreeing",
        "train",
        HISTORY,
        "the same weights, and another file",
        then(changed(HISTORY, '"steps": 3', '"steps": 4'), agree),
        elsewhere=False,
    ),
    Forgery(
        "a raw file beside the pinned ones, all agreeing",
        "record",
        BESIDE,
        "datasets.simulated pins the files of this data set, and not this one",
        then(raw_beside, agree),
        before=pinned,
    ),
    Forgery(
        "an edited page, all agreeing",
        "all",
        PAGE,
        "derived again",
        then(changed(PAGE, "a page", "A page"), agree),
    ),
    Forgery(
        "a page of another command",
        "all",
        "dvc.lock",
        "dvc.yaml declares `exec python -m stages.reporting.report`",
        then(changed("dvc.lock", "stages.reporting.report\n", "stages.reporting\n"), commit),
    ),
    Forgery(
        "a figure replaced by another picture, all agreeing",
        "all",
        f"{REPORTS}/figures/by_lead.svg",
        "derived again",
        then(put(f"{REPORTS}/figures/by_lead.svg", f"{REPORTS}/figures/map.png"), agree),
    ),
    Forgery(
        "a declaration that is not committed",
        "all",
        DECLARED,
        "differs from the commit",
        changed(DECLARED, "stages:", "# a word\nstages:"),
    ),
    Forgery(
        "code beside that no stage declares, not committed",
        "all",
        "stages/beside.py",
        "differs from the commit",
        put("stages/beside.py", "stages/fake.py"),
    ),
)
