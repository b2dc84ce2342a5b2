"""The acquisition stage: folders, manifests, records, and what each kind of source leaves
behind."""

import gzip
import io
import json
import os
import subprocess
import sys
import tarfile
import types
from pathlib import Path

import pytest

from stages import files, params, runner
from stages.acquisition import acquire as stage
from stages.acquisition.download import Limits
from stages.acquisition.mirror import Mirror
from stages.errors import BusyError, DataError, DownloadError
from stages.params import Dataset
from stages.winds import acquire as command

ROOT = Path(__file__).parents[2]
REAL = Path(os.environ.get("TRADEWIND_MIRROR") or ROOT.parent / "shared" / "data")
QUICK = Limits(total_s=2.0, silence_s=0.5, attempts=2, backoff_s=0.01, backoff_max_s=0.02)
BODY = {"a.csv": b"ts,lat\n1,2\n" * 500, "b.csv": b"ts,lat\n3,4\n" * 500}


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch):
    """A project folder with the true code and params (the record hashes them) and no data."""
    for name in ("stages", "params.yaml", "constraints.txt"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TRADEWIND_MIRROR", raising=False)
    return tmp_path


@pytest.fixture
def dataset(server, replies, pin):
    """Two files on the server."""
    for name, body in BODY.items():
        server.script[f"/{name}"] = [replies.whole(body)]
    sources = {
        name: pin(server.url(f"/{name}"), body, licence="CC0-1.0") for name, body in BODY.items()
    }
    return Dataset.model_construct(entry="winds", kind="files", files=sources, simulate=None)


def packed(members):
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as tar:
        for name, body in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(body)
            tar.addfile(info, io.BytesIO(body))
    return gzip.compress(plain.getvalue(), mtime=0)


def work(dataset, mirror=None, limits=QUICK):
    """The stage on `dataset`, as `hour` of the profile sample, with loopback admitted."""
    names = {"profile": "sample", "dataset": "hour"}
    asked = runner.Asked(names, types.SimpleNamespace(datasets={"hour": dataset}))
    ways = {"mirror": mirror, "limits": limits, "loopback": True}
    return stage.work(asked, ["hour"], "stages.winds.acquire", command.own, **ways)


def run(dataset, **changes):
    runner.run(work(dataset, **changes))
    return Path("data/sample/raw/hour")


def tree(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_files_with_manifest_and_record(dataset, server):
    folder = run(dataset)
    assert folder == Path("data/sample/raw/hour")
    found = tree(folder)
    assert set(found) == {"a.csv", "b.csv", "manifest.json"}
    assert {name: found[name] for name in BODY} == BODY
    manifest = json.loads(found["manifest.json"])
    record = files.read_json("data/sample/records/hour.acquire.json")
    assert (manifest["dataset"], manifest["entry"], manifest["kind"]) == ("hour", "winds", "files")
    for name, body in BODY.items():
        assert manifest["files"][name] == {
            "url": server.url(f"/{name}"),
            "source": server.url(f"/{name}"),
            "bytes": len(body),
            "licence": "CC0-1.0",
            "sha256": dataset.files[name].sha256,
        }
        assert (
            record["outputs"][f"data/sample/raw/hour/{name}"]["sha256"]
            == dataset.files[name].sha256
        )
    assert record["outputs"]["data/sample/raw/hour/manifest.json"]["sha256"] == files.sha256(
        folder / "manifest.json"
    )
    assert (
        record["stage"] == "acquire"
        and record["inputs"] == {}
        and "stages/acquisition/acquire.py" in record["code"]["files"]
    )


def test_again_gives_the_same_bytes_without_the_network(dataset, server):
    run(dataset)
    before = tree(Path("data"))
    server.seen.clear()
    server.script = {}
    run(dataset)
    assert tree(Path("data")) == before
    assert server.seen == [], "verified downloads of an earlier run are used again"


def test_a_spoilt_earlier_download_is_not_used(dataset, server, replies):
    before = tree(run(dataset))
    kept = next(Path(".work/downloads").rglob("a.csv"))
    kept.write_bytes(kept.read_bytes()[:-1] + b"?")
    server.seen.clear()
    assert tree(run(dataset)) == before
    assert [path for path, _ in server.seen] == ["/a.csv"]


def test_the_mirror_comes_first_and_leaves_no_difference(dataset, server, tmp_path):
    (tmp_path / "mirror").mkdir()
    for name, body in BODY.items():
        (tmp_path / "mirror" / f"{name}.renamed").write_bytes(body)
    run(dataset, mirror=Mirror(tmp_path / "mirror"))
    with_mirror = tree(Path("data"))
    assert server.seen == []
    run(dataset)
    assert with_mirror == tree(Path("data"))
    assert len(server.seen) == 2


def test_an_archive_is_unpacked_and_described(server, replies, pin):
    body = packed({f"Sky/{name}": text for name, text in BODY.items()})
    server.script["/sky.tar.gz"] = [replies.whole(body)]
    import hashlib

    md5 = hashlib.md5(body).hexdigest()
    source = pin(
        server.url("/sky.tar.gz"),
        body,
        sha256=None,
        md5=md5,
        bytes=None,
        bytes_max=10**6,
        licence="unknown",
    )
    folder = run(
        Dataset.model_construct(
            entry="winds", kind="archive", files={"sky.tar.gz": source}, simulate=None
        )
    )
    assert set(tree(folder)) == {"Sky/a.csv", "Sky/b.csv", "manifest.json"}
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["archives"]["sky.tar.gz"] | {"licence": ""} == {
        "bytes": len(body),
        "licence": "",
        "md5": md5,
        "url": source.url,
        "sha256": hashlib.sha256(body).hexdigest(),
        "source": source.url,
    }
    assert manifest["files"]["Sky/a.csv"]["archive"] == "sky.tar.gz"
    assert manifest["files"]["Sky/a.csv"]["sha256"] == hashlib.sha256(BODY["a.csv"]).hexdigest()


def test_a_file_beside_archives_lies_under_its_own_name(server, replies, pin):
    body = packed({"Sky/a.csv": BODY["a.csv"]})
    server.script["/sky.tar.gz"] = [replies.whole(body)]
    server.script["/vocab.txt"] = [replies.whole(b"[PAD]\n")]
    sources = {
        "sky.tar.gz": pin(server.url("/sky.tar.gz"), body),
        "vocab.txt": pin(server.url("/vocab.txt"), b"[PAD]\n"),
    }
    folder = run(
        Dataset.model_construct(entry="winds", kind="archive", files=sources, simulate=None)
    )
    assert set(tree(folder)) == {"Sky/a.csv", "vocab.txt", "manifest.json"}
    manifest = json.loads((folder / "manifest.json").read_text())
    assert list(manifest["archives"]) == ["sky.tar.gz"]
    assert "archive" not in manifest["files"]["vocab.txt"]


@pytest.mark.parametrize("members", [{"../evil": b"x"}, {"manifest.json": b"{}"}])
def test_a_bad_archive_leaves_the_old_folder(server, replies, pin, members):
    old = Path("data/sample/raw/hour/old.csv")
    old.parent.mkdir(parents=True)
    old.write_text("old")
    body = packed({"fine.csv": b"1"} | members)
    server.script["/sky.tar.gz"] = [replies.whole(body)]
    files_ = {"sky.tar.gz": pin(server.url("/sky.tar.gz"), body)}
    with pytest.raises(DataError):
        run(Dataset.model_construct(entry="winds", kind="archive", files=files_, simulate=None))
    assert tree(Path("data")) == {"sample/raw/hour/old.csv": b"old"}


def test_one_bad_file_leaves_the_old_folder(dataset, server, replies):
    before = tree(run(dataset))
    Path(".work/downloads").rename(".work/elsewhere")
    server.script["/b.csv"] = [replies.whole(b"something else" * 100)]
    with pytest.raises(DownloadError, match="not the pinned one"):
        run(dataset)
    assert tree(Path("data/sample/raw/hour")) == before
    assert [path.name for path in Path("data/sample/raw").iterdir()] == ["hour"]


def test_simulated_files_are_listed(monkeypatch):
    def simulate(plan, folder):
        (folder / "frames_00.csv").write_text(f"{plan.seed},8D\n")
        (folder / "truth.parquet").write_bytes(b"PAR1")

    monkeypatch.setattr(command.simulated, "simulate", simulate)
    dataset = params.load().datasets["simulated"]
    assert command.main(["mini", "simulated"]) == 0
    folder = Path("data/mini/raw/simulated")
    manifest = json.loads((folder / "manifest.json").read_text())
    assert set(manifest["files"]) == {"frames_00.csv", "truth.parquet"}
    assert manifest["files"]["frames_00.csv"] | {"sha256": ""} == {
        "bytes": 9,
        "licence": "MIT",
        "sha256": "",
        "source": "simulated",
        "url": None,
    }
    assert (
        files.read_json("data/mini/records/simulated.acquire.json")["seed"] == dataset.simulate.seed
    )


@pytest.mark.fault("F6")
def test_room_is_estimated_before_anything(dataset, server, monkeypatch):
    monkeypatch.setattr(stage.shutil, "disk_usage", lambda _: types.SimpleNamespace(free=20_000))
    with pytest.raises(DownloadError, match="nothing was begun"):
        run(dataset)
    assert server.seen == [] and not Path("data").exists()


@pytest.mark.fault("F7")
def test_a_second_writer_is_turned_away(dataset):
    with files.guard("data/sample/records/hour.acquire"), pytest.raises(BusyError) as error:
        run(dataset)
    assert error.value.exit_code == 75


CHILD = """
import json, sys
sys.path.insert(0, sys.argv[2])
from stages import runner
from stages.acquisition.download import Limits
from stages.params import Dataset, Source
from test_acquire import work
sources = {name: Source.model_construct(**values) for name, values in \
json.loads(sys.argv[1]).items()}
dataset = Dataset.model_construct(entry="winds", kind="files", files=sources, simulate=None)
runner.run(work(dataset, limits=Limits(total_s=10)))
"""


@pytest.mark.fault("F1", "F3")
@pytest.mark.parametrize(
    ("points", "passages"),
    [
        pytest.param(["before_rename"], [7], id="once"),
        pytest.param(
            ["before_rename", "after_rename"],
            [2, 5, 7, 99],
            id="each",
            marks=pytest.mark.slow_fault,
        ),
    ],
)
def test_killed_around_each_rename_the_folder_is_old_or_new(dataset, project, points, passages):
    """SIGKILL before and after every rename of the stage (validators, files, manifest, record,
    folder)."""
    wanted = tree(run(dataset))
    plan = json.dumps({name: source.model_dump() for name, source in dataset.files.items()})
    for point in points:
        for n in passages:
            subprocess.run(["rm", "-rf", "data", ".work"], check=True)
            child = subprocess.run(
                [sys.executable, "-c", CHILD, plan, str(Path(__file__).parent)],
                env=os.environ | {"FAULT": f"{point}:{n}", "PYTHONPATH": str(ROOT)},
                check=False,
            )
            assert child.returncode == (0 if n == 99 else -9)
            folder = Path("data/sample/raw/hour")
            assert not folder.exists() or set(tree(folder)) == {*BODY, "manifest.json"}
            after = tree(run(dataset))
            assert after == wanted
            assert [path.name for path in folder.parent.iterdir()] == ["hour"], (
                "what the killed run left is swept up"
            )


@pytest.mark.parametrize(
    "words, hint",
    [
        (["sampel", "commb"], "did you mean 'sample'"),
        (["sample", "comb"], "did you mean 'commb'"),
        (["mini", "commb"], "unknown data set of profile 'mini'"),
    ],
)
def test_unknown_names_are_told_with_the_nearest(capsys, words, hint):
    assert command.main(words) == 2
    assert hint in capsys.readouterr().err
    assert not Path("data").exists() and not Path(".work").exists()


def test_the_command_on_the_real_files(monkeypatch):
    if not REAL.is_dir():
        pytest.skip("the folder of real files (TRADEWIND_MIRROR or ../shared/data) is absent")
    monkeypatch.setenv("TRADEWIND_MIRROR", str(REAL))
    assert command.main(["sample", "hour_winds"]) == 0
    found = Path("data/sample/raw/hour_winds/wind.csv").read_text()
    assert found.startswith("ts,icao,lat,lon,alt,vw,dw,vwx,vwy\n") and found.count("\n") in (
        39_845,
        39_846,
    )


def test_a_mirror_that_is_not_there(monkeypatch, capsys):
    monkeypatch.setenv("TRADEWIND_MIRROR", "/nowhere/at/all")
    assert command.main(["sample", "hour_winds"]) == 2
    assert "/nowhere/at/all" in capsys.readouterr().err
