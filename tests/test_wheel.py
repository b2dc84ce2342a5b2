"""A wheel in an empty folder: `import tradewind` there is this package, whole, and each of its
modules exists once; what it answers is what a clone answers."""

import contextlib
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import stages
from stages import api
from stages.errors import InputError

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
NEEDLESS = ("dvc", "prefect", "optuna", "great_expectations", "matplotlib", "jinja2", "xarray")
NEEDLESS += ("fcntl",)  # of POSIX alone: stages hold locks, an answer holds none
ASKED = {"lat_deg": [46.5, 47.0], "lon_deg": [7.2, 8.0], "alt_ft": [34000.0, 33000.0]}
TIME = (
    "2026-01-15T07:20:00Z"  # half an hour after the middle of the first hour of the simulated sky
)
SCRIPT = """
import importlib.abc, json, pickle, sys
class Refuse(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in %r:
            raise ImportError(f"{name} is not installed")
sys.meta_path.insert(0, Refuse())
import tradewind
assert "torch" not in sys.modules and "polars" not in sys.modules
from tradewind import api
import stages.winds.decode, tradewind.winds.decode, flows, tradewind.flows
assert stages is tradewind and stages.winds.decode is tradewind.winds.decode
assert flows is tradewind.flows
twice = {}
for name, module in list(sys.modules.items()):
    if name.partition(".")[0] in ("stages", "tradewind") and getattr(module, "__file__", None):
        twice.setdefault(module.__file__, set()).add(id(module))
assert all(len(ids) == 1 for ids in twice.values()), twice
model, winds, time = api.example()
import polars as pl
answer = model.predict(pl.DataFrame(%r).with_columns(ts_s=pl.lit(time)), context=winds)
assert tradewind.load().folder == model.folder == tradewind.load("example").folder
import warnings
with warnings.catch_warnings(record=True):
    assert tradewind.decode([(time, "8D40621D58C382D690C8AC2863A7")]).is_empty()
point = pickle.loads(pickle.dumps(api.points.Point(1.0, 2.0, 3.0, 4.0)))
assert isinstance(point, tradewind.winds.nowcast.points.Point)
print(json.dumps([tradewind.__file__, tradewind.__version__, answer.to_dicts()]))
""" % (NEEDLESS, ASKED)  # noqa: UP031  (the script has braces)


# Modules of other packages are not found, as if they were not installed; then the command runs.
ALONE = """
import runpy, sys
hidden, sys.argv = set(sys.argv[1].split(",")), ["tradewind", *sys.argv[2:]]
for finder in sys.meta_path:
    if hasattr(finder, "find_spec"):
        def find_spec(name, path=None, target=None, find=finder.find_spec):
            return None if name.partition(".")[0] in hidden else find(name, path, target)
        finder.find_spec = find_spec
runpy.run_module("tradewind.cli", run_name="__main__")
"""


def needed() -> set[str]:
    """The distributions that pip installs with ours, no extra asked for, by their names."""
    found, left = set(), list(PROJECT["project"]["dependencies"])
    while left:
        wanted = Requirement(left.pop())
        name = canonicalize_name(wanted.name)
        if name in found or (wanted.marker and not wanted.marker.evaluate({"extra": ""})):
            continue
        found.add(name)
        with contextlib.suppress(metadata.PackageNotFoundError):  # of torch's, for a GPU
            left += metadata.requires(name) or []
    return found


def test_base_dependencies_are_each_imported_and_none_of_the_laboratorys_is_among_them():
    names = {Requirement(one).name for one in PROJECT["project"]["dependencies"]}
    imported = set()
    for file in (ROOT / "stages").rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        imported |= set(re.findall(r"(?m)^\s*(?:import|from) (\w+)", text))
    names.remove("pandas")  # ppigrf's; and what `predict` takes and gives
    assert {name.partition(".")[0] for name in names} <= imported
    lab = {Requirement(one).name for one in PROJECT["project"]["optional-dependencies"]["lab"]}
    assert {"dvc", "prefect", "optuna", "great-expectations", "matplotlib"} <= lab
    # the pages' templates are torch's too
    assert needed() & {canonicalize_name(one) for one in lab} <= {"jinja2"}


def test_a_capture_is_decoded_and_asked_with_nothing_but_the_base_dependencies(site, tmp_path):
    kept = needed() | {"tradewind"}
    hidden = {
        module
        for module, homes in metadata.packages_distributions().items()
        if not {canonicalize_name(one) for one in homes} & kept and module != "setuptools"
    }
    assert {"dvc", "prefect", "optuna", "matplotlib", "xarray", "yaml"} <= hidden
    command = ("-c", ALONE, ",".join(sorted(hidden)))
    recorded = asked_there(site[1], tmp_path, *command, "capture", "drop", "--hours", "0:1")
    assert recorded.returncode == 0, recorded.stderr
    words = f"nowcast --context {recorded.stdout.strip()} --at 46.5,7.2,FL340,{TIME} --json"
    told = asked_there(site[1], tmp_path, *command, *words.split())
    assert told.returncode == 0, told.stderr
    assert json.loads(told.stdout)["winds"][0]["speed_m_s"] > 1
    drawn = asked_there(site[1], tmp_path, *command, "try", "--plot", "p.png")
    assert drawn.returncode == 2, drawn.stderr
    assert "no matplotlib" in drawn.stderr and "pip install 'tradewind[lab]'" in drawn.stderr


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder into which a wheel of this code is installed."""
    home = tmp_path_factory.mktemp("wheel")
    source, shelf, target = home / "source", home / "shelf", home / "site"
    for name in ("stages", "flows", "data/mini/example"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE", "params.yaml"):
        shutil.copy(ROOT / name, source)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    alone = ["--no-deps", "--no-index"]
    build = [*pip, "wheel", *alone, "--no-build-isolation", "-w", str(shelf), str(source)]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = shelf.glob("*.whl")
    install = [*pip, "install", *alone, "--target", str(target), str(wheel)]
    subprocess.run(install, check=True, capture_output=True)
    return wheel, target


def asked_there(target, tmp_path, *words):
    environment = os.environ | {"PYTHONPATH": str(target)}
    return subprocess.run(
        [sys.executable, *words],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def here():
    model, winds, time = api.example()
    asked = pl.DataFrame(ASKED).with_columns(ts_s=pl.lit(time))
    return model, winds, asked


def test_a_nowcast_from_a_wheel_is_that_of_a_clone(site, tmp_path):
    done = asked_there(site[1], tmp_path, "-c", SCRIPT)
    assert done.returncode == 0, done.stderr
    file, version, rows = json.loads(done.stdout)
    assert Path(file).is_relative_to(site[1]) and version == PROJECT["project"]["version"]
    model, winds, asked = here()
    assert rows == model.predict(asked, context=winds).to_dicts()


def test_the_command_runs_from_a_wheel(site, tmp_path):
    done = asked_there(site[1], tmp_path, "-m", "tradewind.cli", "--version")
    assert done.stdout == f"tradewind {PROJECT['project']['version']}\n", done.stderr


def test_from_a_wheel_a_capture_is_recorded_and_a_nowcast_answers(site, tmp_path):
    command = ("-m", "tradewind.cli")
    recorded = asked_there(site[1], tmp_path, *command, "capture", "drop", "--hours", "0:1")
    assert recorded.returncode == 0, recorded.stderr
    words = f"nowcast --context {recorded.stdout.strip()} --at 46.5,7.2,FL340,{TIME} --json"
    told = asked_there(site[1], tmp_path, *command, *words.split())
    assert told.returncode == 0, told.stderr
    answer = json.loads(told.stdout)
    assert answer["model"] == "kalman-swept-none-s0" and answer["winds"][0]["speed_m_s"] > 1


def test_a_wheel_holds_every_package_and_its_data(site):
    held = set(zipfile.ZipFile(site[0]).namelist())
    assert not [name for name in held if name.startswith(("stages/", "flows/"))]
    wanted = {
        f"{'tradewind/flows' if top == 'flows' else 'tradewind'}/{path.relative_to(ROOT / top)}"
        for top in ("stages", "flows")
        for path in (ROOT / top).rglob("*")
        if path.suffix in (".py", ".yaml", ".json", ".csv", ".html", ".css", ".js")
    }
    assert not wanted - held


def test_the_list_of_packages_is_that_of_the_folders():
    listed = set(PROJECT["tool"]["setuptools"]["packages"])
    found = {
        ".".join((home, *file.parent.relative_to(ROOT / top).parts))
        for top, home in (("stages", "tradewind"), ("flows", "tradewind.flows"))
        for file in (ROOT / top).rglob("__init__.py")
    }
    assert listed == found | {"tradewind.project"}


def test_another_package_of_that_name_is_told(site, tmp_path):
    (tmp_path / "stages.py").write_text("")
    done = asked_there(site[1], tmp_path, "-c", "import stages, tradewind")
    assert "another package called stages is loaded" in done.stderr


def test_one_module_has_two_names():
    import tradewind
    import tradewind.winds.modes.crc

    assert (
        tradewind is stages and tradewind.winds.modes.crc is sys.modules["stages.winds.modes.crc"]
    )
    assert pickle.loads(pickle.dumps(tradewind.fit)) is api.fit
    with pytest.raises(AttributeError, match="nonsense"):
        _ = tradewind.nonsense


def test_tables_come_back_as_they_were_asked():
    import pandas
    import xarray

    model, winds, asked = here()
    told = model.predict(asked, context=winds)
    frame = model.predict(asked.to_pandas(), context=winds.to_pandas())
    assert (
        isinstance(frame, pandas.DataFrame) and frame["u_m_s"].tolist() == told["u_m_s"].to_list()
    )
    grid = xarray.Dataset(
        coords={
            "lat_deg": [46.5, 47.0],
            "lon_deg": [7.2],
            "alt_ft": 34000.0,
            "ts_s": asked["ts_s"][0],
        }
    )
    level = model.predict(grid, context=winds)
    assert level["u_m_s"].sizes == {"lat_deg": 2, "lon_deg": 1}
    assert level["u_m_s"].values[0, 0] == told["u_m_s"][0]
    moments = asked.with_columns(time=pl.from_epoch(asked["ts_s"])).drop("ts_s")
    assert model.predict(moments, context=winds)["v_m_s"].equals(told["v_m_s"])
    with pytest.raises(InputError, match="alt_ft"):
        model.predict(asked.drop("alt_ft"), context=winds)


def test_neighbours_are_those_of_brute_force():
    points = np.random.default_rng(3).random((40, 4))
    found = stages.neighbours(points, points[:5], 3, window=None)
    square = ((points[:5, None] - points) ** 2).sum(-1)
    assert (found.index == square.argsort(1)[:, :3]).all()


@pytest.mark.parametrize("pandas", [False, True], ids=["polars", "pandas"])
def test_neighbours_of_tables_are_a_table_of_rows(pandas):
    points = np.random.default_rng(3).random((40, 4))
    columns = ("east_km", "north_km", "up_km", "ts_s")
    table = pl.DataFrame(points, schema=[*columns], orient="row")
    table = table.with_columns(icao=pl.lit("4b1a1b"))
    table = table.to_pandas() if pandas else table
    found = stages.neighbours(table, table[:5], 3, columns=columns, trajectory="icao")
    plain = stages.neighbours(points, points[:5], 3)
    assert type(found).__module__.partition(".")[0] == ("pandas" if pandas else "polars")
    assert [*found.columns] == ["query", "index", "square_distance"]
    assert np.array_equal(found["index"].to_numpy(), plain.index[plain.mask])
    assert np.array_equal(found["square_distance"].to_numpy(), plain.square_distance[plain.mask])
    assert np.array_equal(found["query"].to_numpy(), np.nonzero(plain.mask)[0])
    with pytest.raises(InputError, match="the queries lack a column"):
        stages.neighbours(points, table, 3)
    with pytest.raises(InputError, match="only a table has columns"):
        stages.neighbours(points, points, 3, trajectory="icao")


def test_frames_become_winds_whatever_holds_them(tmp_path):
    from stages import params
    from stages.winds.sky import capture

    plan = params.load().datasets["simulated"].simulate
    (file,) = capture.capture(plan, tmp_path, 0, 1)
    told = stages.decode(file)
    lines = [line.split(",") for line in file.read_text().splitlines()]
    pairs = [(float(ts), frame) for ts, frame in lines if ts[0].isdigit()]
    assert len(told) > 100 and stages.decode(pairs).equals(told)
    table = pl.DataFrame(pairs, schema=["ts_s", "frame"], orient="row")
    assert len(stages.decode(table.to_pandas())) == len(told)


def test_a_model_fitted_to_ones_own_sets_beats_their_mean():
    rng = np.random.default_rng(5)
    x = rng.random((60, 24, 1))
    y = np.sin(6 * x + 6 * rng.random((60, 1, 1))) * 20 + 100
    sets = dict(context_x=x[:, :16], context_y=y[:, :16], target_x=x[:, 16:], target_y=y[:, 16:])
    small = dict(encoder="shared", head="mean", width=12, heads=2, layers=2)
    fitted = stages.fit("msa", sets, arguments=small, steps=200, learning_rate=3e-3)
    assert fitted.error < 0.8 * y.std()
    answer = fitted.predict(x[:2, :16], y[:2, :16], x[:2, 16:])
    assert answer.shape == (2, 8, 1) and 70 < answer.mean() < 130
    first, second = (stages.fit("msa", sets, arguments=small, steps=2) for _ in range(2))
    assert first.error == second.error != fitted.error
    with pytest.raises(InputError, match="target_y"):
        stages.fit("msa", {k: v for k, v in sets.items() if k != "target_y"})
