"""`tradewind init`: what a file is, told; a declaration that acquires, decodes, judges and prepares
it; nothing written where it must not be."""

import gzip
import hashlib
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from stages import cli, files, params
from stages.params import Prepare
from stages.verbs import containers, init, looks
from stages.winds import acquire, decode, prepare, validate
from stages.winds.nowcast import anywhere
from stages.winds.sky import capture

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def heard(tmp_path_factory):
    """An hour of the simulated sky, as a receiver's file."""
    folder = tmp_path_factory.mktemp("heard")
    (file,) = capture.capture(anywhere.sky(), folder, 0, 1)
    return file.rename(folder / "My Roof-1.csv")


@pytest.fixture
def project(tmp_path, monkeypatch):
    """The project's code, parameters and table of data sets, in the working folder."""
    shutil.copy(ROOT / "params.yaml", tmp_path)
    shutil.copytree(ROOT / "stages", tmp_path / "stages")
    for file in ROOT.glob("reports/*/cells.yaml"):
        (tmp_path / file.parent.relative_to(ROOT)).mkdir(parents=True)
        shutil.copy(file, tmp_path / file.relative_to(ROOT))
    (tmp_path / "data").mkdir()
    shutil.copy(ROOT / "data/README.md", tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def digests(folder):
    return {
        path: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def run(monkeypatch, *words):
    monkeypatch.setattr("sys.argv", ["tradewind", "init", *map(str, words)])
    return cli.main()


def test_a_declared_capture_is_acquired_decoded_judged_and_prepared(
    project, heard, monkeypatch, capsys
):
    assert run(monkeypatch, heard) == 0
    out = capsys.readouterr().out
    assert ": frames, " in out and " bad_crc" in out and ", 1.00 hours" in out
    told = params.load()
    assert told.datasets["my_roof_1"].entry == "frames"
    assert "my_roof_1" in told.profiles["sample"].wind
    monkeypatch.setenv("TRADEWIND_MIRROR", str(heard.parent))
    for stage in (acquire, decode, validate, prepare):
        assert stage.main(["sample", "my_roof_1"]) == 0, capsys.readouterr().err
    meta = files.read_json(project / "data/sample/prepared/my_roof_1/prepared.json")
    assert all(meta["slices"][name] for name in ("train", "val", "test"))
    assert "| `my_roof_1` | sample | frames | My Roof-1.csv | your own |" in (
        project / "data/README.md"
    ).read_text("utf-8")


def test_a_dry_run_shows_the_edits_and_makes_none(project, heard, monkeypatch, capsys):
    before = digests(project)
    assert run(monkeypatch, heard, "--dry-run", "--name", "roof", "--licence", "MIT") == 0
    out = capsys.readouterr().out
    assert digests(project) == before
    for line in (
        "+++ params.yaml",
        "+    wind: [hour_winds, hour_states, gp_wind, sky_44_days, roof]",
        "+roof:",
    ):
        assert f"\n{line}" in out
    assert "\n+      licence: MIT" in out


def test_a_text_becomes_a_data_set_of_sequences(project, monkeypatch, tmp_path_factory):
    text = tmp_path_factory.mktemp("text") / "Poems.txt"
    text.write_text("a line of a poem, and another\n" * 400)
    assert run(monkeypatch, text, "--url", "https://zenodo.org/records/1/files/p.txt") == 0
    told = params.load()
    assert told.datasets["poems"].entry == "sequences"
    assert told.profiles["sample"].readings["poems"].reader == "text"
    assert "poems" in told.profiles["sample"].learning_orders


@pytest.mark.parametrize(
    "words, told", [(["--name", "simulated"], "name"), (["--profile", "x"], "x")]
)
def test_what_stands_already_and_what_is_unknown_is_refused(
    project, heard, monkeypatch, capsys, words, told
):
    before = digests(project)
    assert run(monkeypatch, heard, *words) == 2 and told in capsys.readouterr().err
    assert digests(project) == before


@pytest.mark.parametrize(
    "words, told",
    [
        (["--profile", "nope"], "no such profile"),
        (["--name", "../x"], "no name of a data set"),
        (["--name", ""], "no name of a data set"),
        (["--name", "2026_01_17"], "the first a letter"),
        (["--name", "simulated"], "that name already"),
    ],
)
def test_a_wrong_name_is_refused_of_a_file_that_is_never_declared_too(
    project, monkeypatch, capsys, words, told
):
    array = project / "a.npy"
    np.save(array, np.zeros((9, 4)))
    assert run(monkeypatch, array, *words) == 2 and told in capsys.readouterr().err
    assert run(monkeypatch, array) == 2 and "nothing was declared" in capsys.readouterr().err


def test_a_declaration_that_the_parameters_refuse_is_taken_back(
    project, heard, monkeypatch, capsys
):
    before = digests(project)
    assert run(monkeypatch, heard, "--url", "ftp://somewhere") == 2
    assert "url" in capsys.readouterr().err and digests(project) == before


def published(folder, **changed):
    """A published table of winds (meteo-particle), an hour of it."""
    n = 4000
    rng = np.random.default_rng(2)
    table = pl.DataFrame(
        {
            "icao": [f"4B1{i % 30:03X}" for i in range(n)],
            "ts": 1.5e9 + np.linspace(0, 3600, n),
            "lat": 46 + rng.random(n),
            "lon": 7 + rng.random(n),
            "alt": rng.choice([33000.0, 35000.0, 37000.0], n),
            "vwx": 20 + rng.normal(0, 3, n),
            "vwy": rng.normal(0, 3, n),
        }
    ).with_columns(**changed)
    table.write_csv(folder / "winds.csv")
    return folder / "winds.csv"


def test_another_unit_is_doubted_before_anything_is_declared(
    project, monkeypatch, capsys, tmp_path_factory
):
    folder = tmp_path_factory.mktemp("doubted")
    before = digests(project)
    assert run(monkeypatch, published(folder, alt=pl.col("alt") * 0.3048)) == 2
    assert "metres, not feet" in capsys.readouterr().err and digests(project) == before
    assert run(monkeypatch, published(folder)) == 0
    assert params.load().datasets["winds"].entry == "winds"


def test_what_is_too_short_to_be_split_is_refused(project, monkeypatch, capsys, tmp_path_factory):
    folder = tmp_path_factory.mktemp("short")
    short = published(folder, ts=1.5e9 + (pl.col("ts") - 1.5e9) / 10)
    assert run(monkeypatch, short) == 2 and "6.0 minutes" in capsys.readouterr().err


@pytest.mark.parametrize("hours", [0.9, 2, 3, 8, 48])
def test_the_split_of_any_span_obeys_the_law(hours):
    from ruamel.yaml import YAML

    from stages.winds import slices

    text = init.split("x", (1.7e9, 1.7e9 + 3600 * hours))
    told = Prepare.model_validate(YAML(typ="safe").load(text)["x"])
    made = slices.resolve(told, 1.7e9, 1.7e9 + 3600 * hours)
    slices.check(made, "x")
    (low, high) = made.split.train[0]
    assert high - low >= 1200 * hours


@pytest.mark.parametrize(
    "name, write, kind, told",
    [
        ("a.npy", lambda f: np.save(f, np.zeros((9, 4), int)), "sequences", "array 9x4 int64"),
        (
            "a.npz",
            lambda f: np.savez(f, **{n: np.zeros((9, 4, 1)) for n in containers.SETS}),
            "sets",
            "context_x 9x4x1 float64",
        ),
        ("a.npz", lambda f: np.savez(f, z=np.ones(3)), "arrays", "z 3 float64"),
        (
            "a.csv",
            lambda f: f.write_text("town,price_eur,size_m\na,1,2\nb,3,\n"),
            "table",
            "size_m",
        ),
        ("a.txt", lambda f: f.write_text("to be\n, or not\n"), "text", "2 lines"),
    ],
)
def test_a_file_is_named_for_what_it_holds(tmp_path, name, write, kind, told):
    write(tmp_path / name)
    seen = looks.look(tmp_path / name)
    assert seen.kind == kind and told in looks.render(tmp_path / name, seen)


def test_columns_are_told_with_unit_span_and_missing_values(tmp_path):
    (tmp_path / "a.csv").write_text("town,size_m\na,1.5\nb,\nc,-2\n")
    town, size = looks.look(tmp_path / "a.csv").columns
    assert (size.unit, size.low, size.high, size.missing) == ("m", "-2", "1.5", 1)
    assert (town.unit, town.low, town.high) == ("", "a", "c")


@pytest.mark.parametrize("content", [b"", b"\x00\x01\xff\xfe" * 20])
def test_what_cannot_be_read_is_refused(tmp_path, monkeypatch, capsys, content):
    (tmp_path / "x.bin").write_bytes(content)
    assert run(monkeypatch, tmp_path / "x.bin") == 2
    assert capsys.readouterr().err.startswith("error: ")


def test_a_compressed_text_is_refused(tmp_path, monkeypatch, capsys):
    (tmp_path / "poems.txt.gz").write_bytes(gzip.compress(b"to be\n, or not\n" * 99))
    assert run(monkeypatch, tmp_path / "poems.txt.gz") == 2
    assert "a compressed text is not taken" in capsys.readouterr().err


def test_frames_without_positions_are_told_what_they_lack(
    project, heard, monkeypatch, capsys, tmp_path_factory
):
    lines = heard.read_text().splitlines()
    replies = [line for line in lines if not line.split(",")[-1].upper().startswith("8D")]
    assert 1 < len(replies) < len(lines)
    path = tmp_path_factory.mktemp("placeless") / "replies.csv"
    path.write_text("\n".join(replies))
    assert run(monkeypatch, path) == 2
    told = capsys.readouterr().err
    assert "no wind comes of the frames" in told and "minutes" not in told and "DF 17" in told
