"""A record names exactly the bytes, code, parameters and environment of a stage, and nothing
that changes from run to run."""

import hashlib
import json
from importlib import metadata
from pathlib import Path

import pytest

from stages import code, files, records


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project folder: an input, an output still under a temporary name, two code files."""
    monkeypatch.chdir(tmp_path)
    for name, text in {
        "data/in.csv": "1,2\n",
        ".tmp/weights": "w" * 10,
        ".tmp/sub/history.json": "{}",
        "stages/a.py": "from stages.p import b\n\na = 1\n",
        "stages/p/b.py": "b = 2\n",
        "stages/p/__pycache__/b.pyc": "x",
        "data/.gitignore": "/in.csv\n",
        "data/record.json": "{}",
        "constraints.txt": "numpy==1\n",
    }.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)
    return tmp_path


def record(**more):
    return records.make(
        "train",
        "mini/x",
        inputs=["data"],
        outputs=records.outputs_of(Path(".tmp"), "runs/x"),
        params={"steps": 3},
        code=code.recorded(["stages.a"]),
        seed=1,
        threads=1,
        **more,
    )


def test_inputs_outputs_and_code_are_named_as_they_will_lie_with_their_sha256(project):
    made = record()

    def sha(text):
        return hashlib.sha256(text.encode()).hexdigest()

    assert made["inputs"] == {
        "data/in.csv": {"sha256": sha("1,2\n"), "bytes": 4},
        "data/record.json": {"sha256": sha("{}"), "bytes": 2},
    }
    assert made["outputs"] == {
        "runs/x/sub/history.json": {"sha256": sha("{}"), "bytes": 2},
        "runs/x/weights": {"sha256": sha("w" * 10), "bytes": 10},
    }
    assert made["code"]["files"] == {
        "stages/a.py": sha("from stages.p import b\n\na = 1\n"),
        "stages/p/b.py": sha("b = 2\n"),
    }
    assert (made["stage"], made["cell"], made["seed"], made["params"]) == (
        "train",
        "mini/x",
        1,
        {"steps": 3},
    )


def test_a_record_is_strict_json_and_the_same_bytes_on_every_run(project):
    files.write_json("a.json", record())
    files.write_json("b.json", record())
    assert Path("a.json").read_bytes() == Path("b.json").read_bytes()
    assert files.read_json("a.json") == record()


def test_the_code_digest_changes_with_a_meaning_a_name_and_a_file(project):
    digests = [record()["code"]["digest"]]
    imports = "from stages.p import b\n"
    for text, change in (
        (f"{imports}a = 2\n", None),
        ("from stages.p import c\na = 2\n", lambda: Path("stages/p/b.py").rename("stages/p/c.py")),
        ("from stages.p import c, d\na = 2\n", lambda: Path("stages/p/d.py").write_text("")),
    ):
        Path("stages/a.py").write_text(text)
        if change:
            change()
        digests.append(record()["code"]["digest"])
    assert len(set(digests)) == 4
    Path("stages/p/__pycache__/b.pyc").write_text("compiled anew")
    Path("stages/a.py").write_text('"""What it is."""\nfrom stages.p import c, d\na = 2  # two\n')
    assert record()["code"]["digest"] == digests[-1]


def test_a_missing_input_is_an_error_and_not_an_empty_record(project):
    with pytest.raises(FileNotFoundError):
        records.make("s", "c", inputs=["data/absent.csv"], outputs={}, params={}, code={})


def test_the_environment_names_versions_machine_device_and_constraints(project):
    found = records.environment("cuda:0", 4)
    assert found["libraries"]["numpy"] == metadata.version("numpy") and set(
        found["libraries"]
    ) == set(records.LIBRARIES)
    assert (found["device"], found["threads"]) == ("cuda:0", 4)
    assert found["constraints"] == hashlib.sha256(b"numpy==1\n").hexdigest()
    Path("constraints.txt").unlink()
    assert records.environment()["constraints"] is None


def test_an_absent_library_is_told_as_absent(project, monkeypatch):
    monkeypatch.setattr(records, "LIBRARIES", ("numpy", "no-such-library"))
    assert records.environment()["libraries"]["no-such-library"] is None


def test_durations_go_to_the_work_folder_only(project):
    before = {p for p in project.rglob("*") if p.is_file()}
    with records.timed("train", "mini/x"):
        pass
    new = [
        p.relative_to(project).as_posix()
        for p in project.rglob("*")
        if p.is_file() and p not in before
    ]
    assert new == [".work/durations.jsonl"]
    line = json.loads(Path(new[0]).read_text())
    assert (line["stage"], line["cell"]) == ("train", "mini/x") and 0 <= line["seconds"] < 10


@pytest.mark.parametrize(
    "place, arguments",
    [
        ("data/mini/records/simulated.acquire.json", ("acquire", "mini", "simulated")),
        (
            "reports/wind_nowcast/mini/records/simulated.knn.train.json",
            ("train", "mini", "simulated", "wind_nowcast", "knn"),
        ),
        (
            "reports/wind_nowcast/mini/records/tabulate.json",
            ("tabulate", "mini", None, "wind_nowcast"),
        ),
    ],
)
def test_records_lie_beside_what_they_describe_never_inside(place, arguments):
    stage, profile, dataset, *more = arguments
    assert (
        records.location(
            stage, profile, dataset, **dict(zip(("experiment", "cell"), more, strict=False))
        ).as_posix()
        == place
    )
