"""Random bytes into every reader: an answer or a typed error, nothing else, and nothing written
anywhere (F12, F13, F14; hypothesis).

Each valid file of readers_here.py is replaced by random bytes, cut short, mutated in one byte,
filled with other bytes, or prolonged. Libraries in C that read GRIB, NetCDF and HDF5 are asked in a
process of their own, where a crash would be seen.
"""

import itertools
import json
import sys

import lab
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from readers_here import READERS

from stages import records
from stages.errors import TradewindError

DAMAGE = ("random", "cut", "byte", "stretch", "more")
EXAMPLES = 60


def quiet(examples: int) -> settings:
    return settings(
        max_examples=examples,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )


DAMAGED = given(
    kind=st.sampled_from(DAMAGE), at=st.integers(0, 10**6), other=st.binary(max_size=120)
)


def spoilt(valid: bytes, kind: str, at: int, other: bytes) -> bytes:
    """The valid bytes with one damage; `at` picks the place."""
    at = at % max(1, len(valid))
    return {
        "random": other,
        "cut": valid[:at],
        "byte": valid[:at] + (other[:1] or b"\0") + valid[at + 1 :],
        "stretch": valid[:at] + other + valid[at + len(other) :],
        "more": valid + other,
    }[kind]


def listing(folder) -> dict:
    """Every file below, with its size, but what an archive was unpacked to."""
    return {
        path.as_posix(): path.stat().st_size
        for path in folder.rglob("*")
        if path.is_file() and "unpacked" not in path.parts
    }


@pytest.fixture(scope="module", params=READERS)
def place(request, tmp_path_factory):
    """A folder with valid files, the reader, and the bytes of the file to spoil."""
    folder, reader = tmp_path_factory.mktemp("place") / "inner", READERS[request.param]
    folder.mkdir()
    reader.make(folder)
    return folder, reader, (folder / reader.name).read_bytes()


@pytest.mark.fault("F12", "F13", "F14")
def test_the_valid_file_is_read(place):
    folder, reader, _ = place
    found = reader.read(folder)
    assert found is not None and not (isinstance(found, list) and not found), (
        "the valid file gives nothing: what is refused of damaged ones says little"
    )


@pytest.mark.fault("F12", "F13", "F14")
@quiet(EXAMPLES // 4)
@DAMAGED
def test_whatever_the_bytes_there_is_an_answer_or_a_typed_error(
    place, monkeypatch, tmp_path_factory, kind, at, other
):
    answered(place, monkeypatch, tmp_path_factory, kind, at, other)


@pytest.mark.slow_fault
@pytest.mark.fault("F12", "F13", "F14")
@quiet(EXAMPLES)
@DAMAGED
def test_of_sixty_damages_each_has_an_answer_or_a_typed_error(
    place, monkeypatch, tmp_path_factory, kind, at, other
):
    answered(place, monkeypatch, tmp_path_factory, kind, at, other)


def answered(place, monkeypatch, tmp_path_factory, kind: str, at: int, other: bytes) -> None:
    """Read what is spoilt so: an answer or an error of ours, and every file as it was."""
    folder, reader, valid = place
    monkeypatch.chdir(tmp_path_factory.getbasetemp())
    (folder / reader.name).write_bytes(spoilt(valid, kind, at, other))
    before = listing(folder.parent)
    try:
        with records.timed(
            "read", reader.name
        ):  # as every stage works: here a library's own error becomes one of ours
            reader.read(folder)
    except TradewindError as error:
        assert str(error) and error.exit_code in (1, 2)
    finally:
        after = listing(folder.parent)
        (folder / reader.name).write_bytes(valid)
    assert after == before


CHILD = """
import json, sys
from pathlib import Path
from stages.errors import TradewindError
from stages.fields import gridded
told = {}
for name in sorted(path.name for path in Path(sys.argv[1]).iterdir()):
    try:
        gridded.read(Path(sys.argv[1]) / name)
        told[name] = "read"
    except TradewindError:
        told[name] = "refused"
    except BaseException as error:
        told[name] = f"{type(error).__name__}: {error}"
    print(json.dumps(told), flush=True)
"""


def grids(folder) -> dict[str, bytes]:
    """A field of 3 x 4 values as GRIB, NetCDF-3 and NetCDF-4."""
    eccodes = pytest.importorskip(
        "eccodes", reason="eccodes is not installed: pip install 'tradewind[era5]'"
    )
    xarray = pytest.importorskip("xarray")
    from scipy.io import netcdf_file

    handle = eccodes.codes_grib_new_from_samples("regular_ll_sfc_grib1")
    for key, value in {
        "Nj": 3,
        "Ni": 4,
        "latitudeOfFirstGridPointInDegrees": 50.0,
        "latitudeOfLastGridPointInDegrees": 46.0,
        "longitudeOfFirstGridPointInDegrees": 0.0,
        "longitudeOfLastGridPointInDegrees": 6.0,
        "iDirectionIncrementInDegrees": 2.0,
        "jDirectionIncrementInDegrees": 2.0,
        "paramId": 165,
        "dataDate": 20000101,
        "dataTime": 0,
    }.items():
        eccodes.codes_set(handle, key, value)
    eccodes.codes_set_values(handle, np.arange(12.0))
    found = {"grib": eccodes.codes_get_message(handle) * 2}
    eccodes.codes_release(handle)
    with netcdf_file(folder / "a.nc", "w") as file:
        for word, axis, units in (
            ("time", [0], "hours since 2000-01-01"),
            ("latitude", [50, 48, 46], "degrees_north"),
            ("longitude", [0, 2, 4, 6], "degrees_east"),
        ):
            file.createDimension(word, len(axis))
            stored = file.createVariable(word, "f8", (word,))
            stored[:], stored.units = axis, units
        stored = file.createVariable("u10", "f8", ("time", "latitude", "longitude"))
        stored[:], stored.units = np.arange(12.0).reshape(1, 3, 4), "m s**-1"
    found["netcdf3"] = (folder / "a.nc").read_bytes()
    xarray.open_dataset(folder / "a.nc", engine="scipy", decode_times=False).to_netcdf(
        folder / "b.nc", engine="h5netcdf"
    )
    return found | {"netcdf4": (folder / "b.nc").read_bytes()}


@pytest.mark.fault("F11")
@pytest.mark.parametrize("form", ["grib", "netcdf3", "netcdf4"])
def test_damaged_grids_are_read_or_refused_and_crash_no_library(tmp_path, form):
    valid = grids(tmp_path)[form]
    (tmp_path / "spoilt").mkdir()
    draw, number = np.random.default_rng(0), itertools.count()
    (tmp_path / "spoilt" / f"{next(number):04}").write_bytes(valid)
    for _ in range(12):
        for kind in DAMAGE:
            at, other = int(draw.integers(len(valid))), draw.bytes(int(draw.integers(1, 60)))
            (tmp_path / "spoilt" / f"{next(number):04}").write_bytes(spoilt(valid, kind, at, other))
    done = lab.call(lab.HOME, sys.executable, "-c", CHILD, str(tmp_path / "spoilt"))
    told = json.loads(done.stdout.splitlines()[-1])
    assert done.returncode == 0, f"crashed after {list(told.items())[-1:]}: {done.stdout[-500:]}"
    assert told.pop("0000") == "read" and "refused" in told.values()
    assert {name: word for name, word in told.items() if word not in ("read", "refused")} == {}
