"""The forgeries, as a table: what a forger does, the smallest depth of verification at which it
falls, and the file that is named.

Every case starts from a number that passes at that depth, and passes at the depths before it: what
a depth is for is what only it finds. A careless forger edits files and commits; a careful one also
makes records, locks and cache `agree`. All of them date their commits back. `all` is `tradewind
verify --all`. What falls at no depth: a figure drawn anew by other code of the same name,
everything else agreeing.
"""

import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import audit_project
import pytest
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
from safetensors.numpy import load_file

from stages import code, records
from stages.audit import DEPTHS, audit, hashes
from stages.audit.everything import everything
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


@dataclass(frozen=True)
class Forgery:
    """A case: `before` is history that is honest, `forge` what the forger then does."""

    name: str
    depth: str
    path: str
    word: str
    forge: Callable[[Path], None]
    before: Callable[[Path], None] = lambda project: None
    verdict: str = "FAIL"


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


def objects(project: Path, path: str) -> Path:
    """The cache object of a file."""
    return hashes.Cache(project).path(hashes.Bytes(project).md5(path))


def object_replaced(project: Path) -> None:
    """The cache holds other bytes under the checkpoint's name."""
    place = objects(project, f"{RUN}/weights.safetensors")
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
    """Honest history: params.yaml pins a raw file, and the lock says so."""
    pin = {"frames_00.csv": {"sha256": records.describe(project / FRAMES)["sha256"]}}
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


SPLIT = ("train: [[1860, 18000]]", "train: [[1860, 27000]]")
TRAINING = "stages/training/__init__.py"
OTHER_DRAWS = (
    "from stages import fake\ntrue = fake.np.random.default_rng\n"
    "fake.np.random.default_rng = lambda seed: true(seed + 1)\n"
)
PICTURE = f"{REPORTS}/figures/by_lead.svg"
FORGERIES = (
    Forgery(
        "an edited lock",
        "record",
        f"{DATA}/decoded/simulated",
        "stale",
        then(lock_of_decoding, commit),
    ),
    Forgery(
        "an edited metric", "record", TABLE, "edited by hand", then(table_says(value=1.5), commit)
    ),
    Forgery(
        "an edited metric with a matching lock",
        "record",
        TABLE,
        "recorded",
        then(table_says(value=1.5), lock_of_the_table, commit),
    ),
    Forgery(
        "an edited metric with matching record and lock",
        "record",
        TABLE,
        "value",
        then(table_says(value=1.5), agree),
    ),
    Forgery(
        "an edited metric in table, evaluation, records, locks",
        "eval",
        TABLE,
        "published is 1.5",
        then(says(value=1.5), agree),
    ),
    Forgery(
        "a swapped checkpoint",
        "hash",
        f"{RUN}/weights.safetensors",
        "not those recorded",
        put(f"{RUN}/weights.safetensors", f"{OTHER}/weights.safetensors"),
    ),
    Forgery(
        "a swapped checkpoint with its record",
        "record",
        TRAIN,
        "outputs of another place",
        then(
            put(f"{RUN}/weights.safetensors", f"{OTHER}/weights.safetensors"),
            put(TRAIN, TRAIN.replace("-s0", "-s1")),
            relock,
        ),
    ),
    Forgery(
        "a swapped checkpoint, all else agreeing",
        "eval",
        TABLE,
        "published is",
        then(put(f"{RUN}/weights.safetensors", f"{OTHER}/weights.safetensors"), agree),
    ),
    Forgery(
        "a swapped checkpoint with numbers to match",
        "train",
        f"{RUN}/weights.safetensors",
        "gives other weights",
        then(
            put(f"{RUN}/weights.safetensors", f"{OTHER}/weights.safetensors"), evaluated_anew, agree
        ),
    ),
    Forgery(
        "a re-labelled seed",
        "record",
        TRAIN,
        "named for seed 0, its record says seed 1",
        then(record(TRAIN, lambda one: one.update(seed=1)), agree),
    ),
    Forgery(
        "a truncated evaluation set",
        "record",
        ROWS,
        "it has 20 bytes, recorded are 40",
        halved(ROWS),
    ),
    Forgery(
        "a truncated evaluation set, all agreeing",
        "eval",
        TABLE,
        "n 5, published is 10",
        then(halved(ROWS), agree),
    ),
    Forgery(
        "a changed split",
        "record",
        "params.yaml",
        "stale: prepare",
        then(changed("params.yaml", *SPLIT), commit),
    ),
    Forgery(
        "a changed split with its lock",
        "record",
        f"{DATA}/records/simulated.prepare.json",
        "says train =",
        then(changed("params.yaml", *SPLIT), lock_of_the_split, commit),
    ),
    Forgery(
        "other code with the same digest claimed",
        "record",
        TRAIN,
        "digest is not that of its list",
        then(changed("stages/training/__init__.py", "training", "another"), code_of_old, relock),
    ),
    Forgery(
        "bytes of code that no commit holds",
        "record",
        TRAIN,
        "that no commit holds",
        then(code_of_no_commit, relock),
    ),
    Forgery(
        "bytes of code that mean something else than the digest",
        "record",
        TRAIN,
        "mean another code than its digest tells",
        then(code_of_another_meaning, relock),
        before=lived,
    ),
    Forgery(
        "a record that leaves its module out",
        "record",
        TRAIN,
        "lacks the module stages.training.train",
        then(modules_left_out, relock),
    ),
    Forgery(
        "other code claimed to have trained",
        "train",
        f"{RUN}/weights.safetensors",
        "gives other weights",
        then(
            changed("stages/training/train.py", "from stages import fake\n", OTHER_DRAWS),
            code_claimed,
            agree,
        ),
    ),
    Forgery(
        "a back-dated record: an earlier run's beside newer outputs",
        "record",
        f"{RUN}/history.json",
        "but train",
        then(put(TRAIN, "earlier.json"), relock),
        before=another_run,
    ),
    Forgery(
        "a record that names inputs of an earlier version",
        "record",
        f"{RUN}/weights.safetensors",
        "read aaaaaaaaaaaa",
        then(inputs_of_old, relock),
    ),
    Forgery(
        "parameters edited in a record",
        "record",
        TRAIN,
        "steps = 9000, the parameters say 1500",
        then(record(TRAIN, lambda one: one["params"].update(steps=9000)), agree),
    ),
    Forgery(
        "parameters edited with the lock",
        "record",
        TRAIN,
        "steps = 1500, the parameters say 9000",
        then(
            changed("params.yaml", "steps: 1500", "steps: 9000"),
            lambda project: (
                (project / LOCK).write_text(
                    (project / LOCK).read_text().replace("steps: 1500", "steps: 9000")
                )
                and None
            ),
            commit,
        ),
    ),
    Forgery(
        "a record copied from another experiment",
        "record",
        EVALUATE,
        "outputs of another place",
        then(put(EVALUATE, EVALUATE.replace("wind_nowcast", "sensor_noise")), relock),
    ),
    Forgery(
        "an edited printed value",
        "record",
        "data/published/thesis_table_1_2.csv",
        "SHA-256",
        then(changed("data/published/thesis_table_1_2.csv", "8.1", "9.1"), commit),
    ),
    Forgery(
        "another companion",
        "record",
        "reports/wind_nowcast/companions.csv",
        "SHA-256",
        then(changed("reports/wind_nowcast/companions.csv", "knn", "msa"), commit),
    ),
    Forgery(
        "an edited verdict of a claim",
        "record",
        f"{REPORTS}/claims.json",
        "edited by hand",
        then(changed(f"{REPORTS}/claims.json", "true", "null"), commit),
    ),
    Forgery(
        "an edited verdict of a claim, all agreeing",
        "all",
        f"{REPORTS}/claims.json",
        "derived again",
        then(changed(f"{REPORTS}/claims.json", "true", "null"), agree),
    ),
    Forgery(
        "an edited cell of the table",
        "record",
        f"{REPORTS}/table.md",
        "edited by hand",
        then(changed(f"{REPORTS}/table.md", "a table", "A table"), commit),
    ),
    Forgery(
        "an edited cell of the table, all agreeing",
        "all",
        f"{REPORTS}/table.md",
        "derived again",
        then(changed(f"{REPORTS}/table.md", "a table", "A table"), agree),
    ),
    Forgery(
        "a figure replaced by another picture",
        "record",
        PICTURE,
        "recorded",
        then(put(PICTURE, f"{REPORTS}/figures/map.png"), commit),
    ),
    Forgery(
        "a replaced cache object",
        "hash",
        f"{RUN}/weights.safetensors",
        "cache is damaged",
        object_replaced,
    ),
    Forgery(
        "a replaced cache object and working copy",
        "hash",
        f"{RUN}/weights.safetensors",
        "not those recorded",
        then(object_replaced, put(f"{RUN}/weights.safetensors", f"{OTHER}/weights.safetensors")),
    ),
    Forgery(
        "a manifest that leaves out a file",
        "hash",
        f"{DATA}/raw/simulated",
        "manifest in DVC's cache is damaged",
        listed_without,
    ),
    Forgery(
        "a manifest that leaves out a file, with its lock",
        "hash",
        FRAMES,
        "manifest does not list it",
        then(left_out, commit),
    ),
    Forgery(
        "re-labelled libraries",
        "record",
        TRAIN,
        "numpy 0.9",
        verdict="INCONCLUSIVE",
        forge=then(
            record(TRAIN, lambda one: one["environment"]["libraries"].update(numpy="0.9")), agree
        ),
    ),
    Forgery(
        "re-labelled libraries, carelessly",
        "record",
        TRAIN,
        "edited by hand",
        then(
            record(TRAIN, lambda one: one["environment"]["libraries"].update(numpy="0.9")), commit
        ),
    ),
    Forgery(
        "a raw file swapped with the manifest",
        "record",
        FRAMES,
        "datasets.simulated pins",
        then(raw_with_its_manifest, agree),
        before=pinned,
    ),
    Forgery(
        "numbers of two models exchanged",
        "record",
        TABLE,
        "the table does not say what the evaluation says",
        then(exchanged, agree),
    ),
    Forgery(
        "a changed unit",
        "eval",
        TABLE,
        "unit 'kn', published is 'm/s'",
        then(says(unit="m/s"), agree),
    ),
    Forgery(
        "a changed count", "eval", TABLE, "n 10, published is 1000000", then(says(n=10**6), agree)
    ),
    Forgery(
        "a narrowed interval",
        "eval",
        TABLE,
        "low ",
        then(lambda project: says(low=number_of(project) - 0.1)(project), agree),
    ),
    Forgery(
        "an edited count of dropped rows",
        "hash",
        COUNTS,
        "not those recorded",
        then(changed(COUNTS, "10", "11"), changed(COUNTS, "10", "11")),
    ),
    Forgery(
        "an edited count of dropped rows, all agreeing",
        "record",
        COUNTS,
        "do not add up",
        then(changed(COUNTS, '"kept": 10', '"kept": 11'), agree),
    ),
)


@pytest.fixture(scope="session")
def whole(tmp_path_factory):
    """The project without its one file of no record, so that `verify --all` passes it."""
    return audit_project.build(
        tmp_path_factory.mktemp("forged"), without=("data/mini/prepared/other/rows.parquet",)
    )


@pytest.fixture
def project(whole, tmp_path, monkeypatch, evaluation):
    """A copy of it, evaluated, tabulated and claimed by its own arithmetic; every commit claims
    to be of 2001."""
    for name in ("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"):
        monkeypatch.setenv(name, "2001-01-01T00:00:00Z")
    return Path(shutil.copytree(whole, tmp_path / "project", symlinks=True))


def verified(project: Path, depth: str):
    """What a depth of verification finds."""
    return everything(project) if depth == "all" else audit(NUMBER, depth, project)


@pytest.mark.parametrize("case", FORGERIES, ids=lambda case: case.name.replace(" ", "_"))
def test_a_forgery_falls_at_its_depth_by_name_and_not_before(project, case):
    depths = (*DEPTHS, "all")
    case.before(project)
    assert verified(project, case.depth).verdict == "PASS"
    case.forge(project)
    for depth in depths[: depths.index(case.depth)]:
        assert verified(project, depth).verdict == "PASS", depth
    found = verified(project, case.depth)
    assert found.verdict == case.verdict
    assert any(
        problem.verdict == case.verdict and problem.path == case.path and case.word in problem.text
        for problem in found.problems
    ), found.problems


def test_twenty_forgeries_and_more_are_planted_and_each_by_another_name():
    assert len({case.name for case in FORGERIES}) == len(FORGERIES) >= 20
    assert {case.depth for case in FORGERIES} == {*DEPTHS, "all"}
