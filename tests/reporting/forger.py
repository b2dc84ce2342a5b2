"""What a forger can do to a project: edits, and what makes records, locks and cache agree with
them."""

import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import audit_project
from audit_project import (  # noqa: F401 (fixtures)
    DATA,
    EVALUATED,
    NUMBER,
    RAW_LOCK,
    REPORTS,
    RUN,
    TABLE,
    agree,
    commit,
    edit,
    evaluation,
    number_of,
    relock,
)
from cached import object_of
from safetensors.numpy import load_file

from stages import code, records
from stages.audit import hashes
from stages.files import json_text

CELL = "msa-shared-5k-s0"
OTHER = RUN.replace("-s0", "-s1")
TRAIN, EVALUATE, TABULATE = (
    f"{REPORTS}/records/{name}.json"
    for name in (f"simulated.{CELL}.train", "simulated.evaluate", "tabulate")
)
ROWS, FRAMES, COUNTS = (
    f"{DATA}/{name}"
    for name in (
        "prepared/simulated/rows.parquet",
        "raw/simulated/frames_00.csv",
        "decoded/simulated/counts.json",
    )
)
LOCK = "reports/wind_nowcast/dvc.lock"


def nothing(project: Path) -> None:
    """No history of the case's own."""


@dataclass(frozen=True)
class Forgery:
    """A case: `before` is history that is honest, `forge` what the forger then does."""

    name: str
    depth: str
    path: str
    word: str
    forge: Callable[[Path], None]
    before: Callable[[Path], None] = nothing
    verdict: str = "FAIL"
    elsewhere: bool = True  # whether it falls on another arithmetic than its own, too


def entry(
    project: Path, change: Callable[[dict], None], files: tuple[str, ...] = (TABLE, EVALUATED)
) -> None:
    """Change the number's entry in the table, in the evaluation, or in both."""
    for file in files:
        content = json.loads((project / file).read_text())
        cells = content["cells"]
        change(
            cells[CELL if file == EVALUATED else f"simulated/{CELL}"]["metrics"][
                "rmse_component_kn"
            ]
        )
        (project / file).write_text(json_text(content))


def then(*steps: Callable[[Path], None]) -> Callable[[Path], None]:
    """One after another."""
    return lambda project: [step(project) for step in steps] and None


def says(**content) -> Callable[[Path], None]:
    """The number's entry says so, in table and evaluation."""
    return lambda project: entry(project, lambda one: one.update(content))


def table_says(**content) -> Callable[[Path], None]:
    """The table alone says so."""
    return lambda project: entry(project, lambda one: one.update(content), (TABLE,))


def changed(path: str, old: str, new: str) -> Callable[[Path], None]:
    """Text replaced in a file."""
    return lambda project: edit(project / path, old, new)


def put(path: str, source: str) -> Callable[[Path], None]:
    """A file replaced by a copy of another."""
    return lambda project: shutil.copy(project / source, project / path) and None


def record(path: str, change: Callable[[dict], None]) -> Callable[[Path], None]:
    """A record edited."""

    def work(project: Path) -> None:
        content = json.loads((project / path).read_text())
        change(content)
        (project / path).write_text(json.dumps(content))

    return work


def halved(path: str) -> Callable[[Path], None]:
    """Only the first half of a file."""
    return lambda project: (
        (project / path).write_bytes(
            (project / path).read_bytes()[: (project / path).stat().st_size // 2]
        )
        and None
    )


def lock_of_decoding(project: Path) -> None:
    """Another MD5 for what decoding made."""
    folder = f"{DATA}/decoded/simulated"
    edit(
        project / "dvc.lock", hashes.Locks(project).producer(folder).outs[folder], "0" * 32 + ".dir"
    )


def lock_of_the_split(project: Path) -> None:
    """Another split in the lock, whichever way its lists are written."""
    old = next(
        text for text in ("- 18000", ", 18000") if text in (project / "dvc.lock").read_text()
    )
    edit(project / "dvc.lock", old, old.replace("18000", "27000"))


def lock_of_the_table(project: Path) -> None:
    """The lock's MD5 of the table made to match it."""
    edit(
        project / LOCK,
        hashes.Locks(project, "wind_nowcast").producer(TABLE).outs[TABLE],
        hashes.Bytes(project).md5(TABLE),
    )


def evaluated_anew(project: Path) -> None:
    """Evaluation and table say what the checkpoint now gives."""
    value = float(load_file(project / RUN / "weights.safetensors")["w"].mean())
    says(value=value, low=value - 1, high=value + 1)(project)


def code_of_old(project: Path) -> None:
    """The record lists the code as it now is and claims the digest that it had."""
    record(
        TRAIN,
        lambda one: one["code"]["files"].update(
            {path: records.describe(project / path)["sha256"] for path in one["code"]["files"]}
        ),
    )(project)


def code_claimed(project: Path) -> None:
    """The records of training claim, digest and all, that the tree's code made these weights."""
    audit_project.run(project, sys.executable, "-m", "stages.code")
    for file in (project / REPORTS / "records").glob("*.train.json"):
        content = json.loads(file.read_text())
        claimed = code.recorded(content["code"]["modules"], project)
        file.write_text(json.dumps(content | {"code": claimed}))


def code_of_no_commit(project: Path) -> None:
    """The record names bytes of its code that never were; its digest is as it was."""
    record(TRAIN, lambda one: one["code"]["files"].update({TRAINING: "a" * 64}))(project)


def lived(project: Path) -> None:
    """Honest history: the training's code was once another, and is what it was again."""
    file = project / TRAINING
    text = file.read_text()
    for content in (text.replace("training", "another"), text):
        file.write_text(content)
        commit(project)


def code_of_another_meaning(project: Path) -> None:
    """The record names bytes that stand in history and mean another code; its digest is that of
    today's."""
    content = (project / TRAINING).read_text().replace("training", "another").encode()
    sha = hashes.hashlib.sha256(content).hexdigest()
    record(TRAIN, lambda one: one["code"]["files"].update({TRAINING: sha}))(project)


def modules_left_out(project: Path) -> None:
    """The record names a module less, and all else of it agrees."""
    claimed = code.recorded(["stages.acquisition.acquire"], project)
    record(TRAIN, lambda one: one.update(code=claimed))(project)


def another_run(project: Path) -> None:
    """Honest history: the cell trained once more, all that follows made anew; the earlier record
    is kept aside."""
    shutil.copy(project / TRAIN, project / "earlier.json")
    (project / RUN / "history.json").write_text('{"steps": 7}')
    agree(project)


def inputs_of_old(project: Path) -> None:
    """The evaluation claims to have read an earlier checkpoint."""
    record(
        EVALUATE, lambda one: one["inputs"][f"{RUN}/weights.safetensors"].update(sha256="a" * 64)
    )(project)


def exchanged(project: Path) -> None:
    """The entries of two models change places in the table."""
    content = json.loads((project / TABLE).read_text())
    cells = content["cells"]
    cells["simulated/knn"], cells[f"simulated/{CELL}"] = (
        cells[f"simulated/{CELL}"],
        cells["simulated/knn"],
    )
    (project / TABLE).write_text(json_text(content))


def object_replaced(project: Path) -> None:
    """The cache holds other bytes under the checkpoint's name."""
    place = object_of(project, f"{RUN}/weights.safetensors")
    place.chmod(0o644)
    place.write_bytes((project / OTHER / "weights.safetensors").read_bytes())


def left_out(project: Path) -> None:
    """The manifest of the raw folder no longer lists a file; object, locks and commit agree with
    that, the records do not say."""
    folder = f"{DATA}/raw/simulated"
    md5 = hashes.Locks(project).producer(folder).outs[folder]
    kept = [
        one
        for one in json.loads(hashes.Cache(project).path(md5).read_bytes())
        if one["relpath"] != "frames_00.csv"
    ]
    place = hashes.Cache(project).path(hashes.manifest_md5(kept))
    place.parent.mkdir(exist_ok=True)
    place.write_text(json.dumps(kept, sort_keys=True))
    for lock in (project / RAW_LOCK, project / "dvc.lock"):  # who made it, and who read it
        edit(lock, md5, hashes.manifest_md5(kept))


def listed_without(project: Path) -> None:
    """As `left_out`, but under the name that the manifest had."""
    folder = f"{DATA}/raw/simulated"
    place = hashes.Cache(project).path(hashes.Locks(project).producer(folder).outs[folder])
    place.chmod(0o644)
    place.write_text(
        json.dumps(
            [one for one in json.loads(place.read_bytes()) if one["relpath"] != "frames_00.csv"],
            sort_keys=True,
        )
    )


def pinned(project: Path) -> None:
    """Honest history: params.yaml pins the raw files, and the lock says so."""
    raw = (project / FRAMES).parent
    pin = {
        name: {"sha256": records.describe(raw / name)["sha256"]}
        for name in ("frames_00.csv", "frames_01.csv", "truth.parquet")
    }
    edit(
        project / "params.yaml",
        "    kind: simulate\n",
        f"    kind: simulate\n    files: {json.dumps(pin)}\n",
    )
    edit(
        project / RAW_LOCK,
        "          entry: frames\n",
        f"          entry: frames\n          files: {json.dumps(pin)}\n",
    )
    commit(project)


def raw_with_its_manifest(project: Path) -> None:
    """Another raw file, and the manifest lists its SHA-256."""
    manifest = project / DATA / "raw/simulated/manifest.json"
    audit_project.flip(project / FRAMES, 0)
    listed = json.loads(manifest.read_text())
    listed["files"]["frames_00.csv"] |= records.describe(project / FRAMES)
    manifest.write_text(json.dumps(listed))


TRAINING = "stages/training/__init__.py"
