"""What `tradewind init` tells of files that it cannot declare, and what works today for them; what
it writes of names and licences that YAML and Markdown would read otherwise.
"""

import gzip
import json
import shlex
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from ruamel.yaml import YAML

from stages import cli, params
from stages.errors import InputError
from stages.verbs import advice, looks
from stages.winds.decoding import readers

ROOT = Path(__file__).parents[1]


def run(monkeypatch, *words):
    monkeypatch.setattr("sys.argv", ["tradewind", "init", *map(str, words)])
    return cli.main()


@pytest.fixture
def project(tmp_path, monkeypatch):
    """The project's parameters and table of data sets, in the working folder."""
    shutil.copy(ROOT / "params.yaml", tmp_path)
    shutil.copytree(ROOT / "stages/params", tmp_path / "stages/params")
    for file in ROOT.glob("reports/*/cells.yaml"):
        (tmp_path / file.parent.relative_to(ROOT)).mkdir(parents=True)
        shutil.copy(file, tmp_path / file.relative_to(ROOT))
    (tmp_path / "data").mkdir()
    shutil.copy(ROOT / "data/README.md", tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def seen(folder, name, text):
    (folder / name).write_text(text)
    return looks.look(folder / name)


def semicolons():
    rows = (f"{i};{i / 7:.14f};{i / 3:.14f};{i / 9:.14f}" for i in range(50))
    return "set;x;y;value\n" + "\n".join(rows).replace(".", ",")


@pytest.mark.parametrize(
    "name, text, kind, rows, told",
    [
        ("s.json", "[[4,8,15],[16,23,42]]", "sequences", 2, "sequences of 3 whole numbers"),
        ("s.jsonl", "[4,8,15]\n[1,2]\n", "sequences", 2, "their lengths differ"),
        ("o.jsonl", '{"x": 1, "y": 2.5}\n{"x": 3, "y": null}\n', "table", 2, "an object a row"),
        ("o.json", '[{"x": 1, "y": 2.5}]', "table", 1, "an object a row"),
        ("r.json", "[[1.5,2],[3]]", "JSON", 2, "neither of sequences nor of objects"),
        ("n.csv", "1.5,2,3\n4,5,6\n", "table", 2, "no header"),
        ("semi.csv", semicolons(), "table", 50, "parted by semicolons"),
        ("n.txt", "4 8 15\n16 23 42\n", "sequences", 2, "no prose"),
        ("one.txt", "to be or not", "text", 1, "1 line\n"),
        ("pi.txt", "3" + "1" * 5000, "text", 1, "1 line\n"),
    ],
)
def test_a_text_is_told_for_what_it_holds(tmp_path, name, text, kind, rows, told):
    found = seen(tmp_path, name, text)
    assert (found.kind, found.rows) == (kind, rows)
    assert told in looks.render(tmp_path / name, found)


def test_arrays_in_json_are_told_as_sets(tmp_path):
    text = json.dumps({name: [[[0.0]]] for name in looks.containers.SETS})
    assert seen(tmp_path, "sets.json", text).kind == "sets"


def test_cells_that_are_no_number_are_missing(tmp_path):
    (*_, value) = seen(tmp_path, "a.csv", "x,y,value\n1,2,NaN\n3,4,5\n6,7,\n").columns
    assert (value.low, value.high, value.missing) == ("5", "5", 2)


def test_columns_stand_below_their_header_where_names_are_short(tmp_path):
    found = seen(tmp_path, "a.csv", "x,y\n1,2\n3,4\n")
    lines = looks.render(tmp_path / "a.csv", found).splitlines()[-3:]
    assert len({line.index("?") if "?" in line else line.index("unit") for line in lines}) == 1


@pytest.mark.parametrize(
    "name, bytes_, told",
    [("a.json", b"[[1,2],[3", "the JSON is damaged"), ("a.npz", b"a text", "its bytes are not")],
)
def test_what_is_damaged_or_misnamed_is_told_as_such(tmp_path, name, bytes_, told):
    (tmp_path / name).write_bytes(bytes_)
    with pytest.raises(InputError, match=told) as error:
        looks.look(tmp_path / name)
    assert "allow_pickle" not in str(error.value)


def test_an_array_of_objects_gives_no_advice_to_unpickle_it(tmp_path):
    np.save(tmp_path / "a.npy", np.array([{1: 2}]), allow_pickle=True)
    with pytest.raises(InputError, match="Python's objects"):
        looks.look(tmp_path / "a.npy")


@pytest.mark.parametrize("engine, kind", [("scipy", "netCDF"), ("h5netcdf", "HDF5")])
def test_variables_of_netcdf_are_told_with_axes_and_units(tmp_path, engine, kind):
    xarray = pytest.importorskip("xarray")
    pytest.importorskip(engine)
    held = {"t2m": (("time", "lat"), np.array([[280.0, np.nan]]), {"units": "K"})}
    xarray.Dataset(held).to_netcdf(tmp_path / "a.nc", engine=engine)
    found = looks.look(tmp_path / "a.nc")
    (column,) = found.columns
    assert found.kind == "grid" and f"a file of {kind}" in found.notes
    assert column.name == "t2m(time, lat) 1x2 float64"
    assert (column.unit, column.low, column.missing) == ("K", "280", 1)


def test_arrays_of_hdf5_are_told_by_their_paths(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["deep/b"] = np.arange(6).reshape(2, 3)
    (column,) = looks.look(tmp_path / "a.h5").columns
    assert (column.name, column.high) == ("deep/b 2x3 int64", "5")


@pytest.mark.parametrize("start", [b"CDF\x01junk", b"\x89HDF\r\n\x1a\njunk", b"GRIBjunk"])
def test_a_damaged_grid_is_told_by_its_first_bytes(tmp_path, monkeypatch, capsys, start):
    (tmp_path / "a.bin").write_bytes(start)
    assert run(monkeypatch, tmp_path / "a.bin") == 2
    said = capsys.readouterr()
    assert "a file of " in said.out and "reports/notebooks/fields.ipynb" in said.err


def test_points_of_a_field_are_told_what_works_today(tmp_path, monkeypatch, capsys):
    (tmp_path / "a.csv").write_text("x,y,value\n1,2,3\n4,5,6\n")
    assert run(monkeypatch, tmp_path / "a.csv") == 2
    said = capsys.readouterr().err
    assert "nothing was declared" in said and "tradewind.fit" in said
    assert "stages/fields/problems" in said and "stages/sequences/data" in said


OURS = "ts_s,icao,lat_deg,lon_deg,alt_ft,u_m_s,v_m_s"


def winds(file, header=OURS):
    rows = (
        f"{1.5e9 + 2 * i},4B1{i % 30:03X},{46 + i % 9 / 9},7.5,{33000 + 1000 * (i % 4)},20,{i % 3}"
        for i in range(2400)
    )
    file.write_text("\n".join([header, *rows]))
    return file


@pytest.mark.parametrize("name, start_s", [("ts_s", 7), ("ts", 7), ("ts_s", 1_700_000_007)])
def test_times_that_count_from_a_beginning_of_their_own_are_no_unix_seconds(
    tmp_path, name, start_s
):
    rows = "".join(f"{start_s + 10 * i},46,7,34000,20,3\n" for i in range(548))
    header = f"{name},lat,lon,alt_ft,u_m_s,v_m_s\n"
    text = looks.render(tmp_path / "a.csv", seen(tmp_path, "a.csv", header + rows))
    (column,) = (line.split() for line in text.splitlines() if line.startswith(f"{name} "))
    if start_s == 7:
        assert "from 7 to 5,477 s after a beginning of its own, 1.52 hours" in text
        assert column[1:] == ["s", "7", "5477", "0"] and "1970-01-01T00:00:07" not in text
    else:
        assert "from 2023-11-14T22:13:27Z" in text and column[1:3] == ["Unix", "s"]


@pytest.mark.parametrize(
    "header, name, told",
    [
        (OURS, "my winds.csv", ""),
        (OURS.replace("icao", "from"), "winds.csv", "each row counts as one of its own"),
        ("time,icao24,lat,lon,altitude,u_kn,v_kn".replace("altitude", "alt_m"), "k.csv", ""),
    ],
)
def test_winds_in_our_columns_are_declared(project, monkeypatch, capsys, header, name, told):
    file = winds(project / name, header)
    metres = "alt_m" in header
    if metres:
        rows = file.read_text().replace(",33000,", ",10058,").replace(",34000,", ",10363,")
        file.write_text(rows.replace(",35000,", ",10668,").replace(",36000,", ",10973,"))
    assert run(monkeypatch, name) == 0
    said = capsys.readouterr().out
    assert told in said and ("names the aircraft" in said) == bool(told)
    made = params.load().datasets[looks.name_of(Path(name))]
    assert made.entry == "winds" and list(made.files) == [f"{looks.name_of(Path(name))}.csv"]
    read = readers.read_winds(file, 0).collect()
    assert read["drop"].is_null().all() and read["alt_ft"].min() == pytest.approx(33000, abs=3)
    assert read["icao"].str.contains("^[0-9A-F]{6}$").all()


@pytest.mark.parametrize("name", ["w.parquet", "w.jsonl", "w.json.gz"])
def test_winds_of_every_form_keep_their_suffix(project, monkeypatch, name):
    table = pl.read_csv(winds(project / "a.csv"))
    if name.endswith("parquet"):
        table.write_parquet(project / name)
    else:
        text = table.write_ndjson().encode()
        (project / name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    assert run(monkeypatch, name) == 0
    made = params.load().datasets["w"]
    assert made.entry == "winds" and list(made.files) == [name]


def test_a_licence_and_a_name_are_kept_as_they_are_written(project, monkeypatch, tmp_path_factory):
    file = tmp_path_factory.mktemp("my texts") / "a|b.txt"
    file.write_text("to be, or not to be\n" * 300)
    assert run(monkeypatch, file, "--licence", "#1 own: all | rights") == 0
    told = YAML(typ="safe").load(Path("stages/params/datasets/sequences.yaml"))
    (pinned,) = told["a_b"]["files"].values()
    assert pinned["licence"] == "#1 own: all | rights"
    row = next(line for line in Path("data/README.md").read_text().splitlines() if "`a_b`" in line)
    assert row.replace("\\|", "").count("|") == 8 and "a\\|b.txt" in row


@pytest.mark.parametrize("entry", ["sequences", "winds", "frames"])
def test_what_follows_names_stages_and_an_experiment_that_there_are(entry):
    told = advice.following("mine", "sample", Path("/my texts"), entry)
    assert shlex.quote("/my texts") in told
    repros = [line.split()[-1] for line in told.splitlines() if "dvc repro" in line]
    for target in repros:
        file, _, stage = target.rpartition(":")
        stages = YAML(typ="safe").load(ROOT / (file or "dvc.yaml"))["stages"]
        assert stage.partition("@")[0] in stages
    home = YAML(typ="safe").load(ROOT / repros[-1].partition(":")[0].replace("dvc.", "cells."))
    cell = next(line.strip() for line in told.splitlines() if "dataset: mine" in line)
    (key, parts), *_ = YAML(typ="safe").load(cell).items()
    like = [one for one in home["sample"]["cells"].values() if one["model"] == parts["model"]]
    assert key in repros[-1] and any(set(one) >= set(parts) for one in like)
    model = YAML(typ="safe").load(ROOT / f"stages/params/models/{parts['model']}.yaml")
    assert parts["arm"] in model["arms"] and parts["size"] in model["sizes"]
