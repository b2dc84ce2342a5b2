"""Files that hold arrays, as `tradewind init` sees them: NumPy's and safetensors; netCDF, HDF5 and
GRIB, which are known by their first bytes.

The variables of the last three are listed with their axes where the libraries are installed that
read them (the extra `era5`): xarray for netCDF, h5py for HDF5, eccodes for GRIB.
"""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from stages.errors import InputError
from stages.verbs.seen import Column, Look, column, unit

SETS = ("context_x", "context_y", "target_x", "target_y")
ARRAYS = {".npy": (b"\x93NUMPY",), ".npz": (b"PK\x03\x04", b"PK\x05\x06"), ".safetensors": (b"",)}
GRIDS = {b"CDF": "netCDF", b"\x89HDF": "HDF5", b"GRIB": "GRIB"}
READ_MOST = 10_000_000  # values of a variable; the span of a larger one is not looked for
MESSAGES_MOST = 10_000
EXTRA = "pip install -e '.[era5]'"


def arrays(path: Path, first: bytes) -> Look:
    """A file that is named as one of arrays. InputError for what is none, or damaged."""
    if not first.startswith(ARRAYS[path.suffix]):
        raise InputError(
            "the file's name is one of arrays, its bytes are not",
            where=str(path),
            expected=f"what numpy.save or numpy.savez writes into {path.suffix}",
            found=f"a file that begins {first[:24]!r}",
            remedy="name the file by what it holds, such as .csv or .txt",
        )
    held = _opened(path)
    if not held:
        raise InputError("the file holds no array", where=str(path))
    columns = tuple(column(name, array) for name, array in held.items())
    only = next(iter(held.values()))
    if set(SETS) <= set(held):
        return Look("sets", len(held[SETS[0]]), columns)
    if len(held) == 1 and only.ndim == 2 and only.dtype.kind in "iu":
        return Look("sequences", len(only), columns)
    return Look("arrays", len(only) if only.ndim else 1, columns)


def _opened(path: Path) -> Mapping[str, Any]:
    """Arrays by name; nothing is unpickled. InputError for what is damaged."""
    try:
        if path.suffix == ".safetensors":
            from safetensors.numpy import load_file

            return dict(load_file(path))
        found = np.load(path, allow_pickle=False)
        return {"array": found} if path.suffix == ".npy" else {k: found[k] for k in found.files}
    except Exception as error:  # each library has errors of its own
        says = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(
            "the arrays cannot be read",
            where=str(path),
            found="an array of Python's objects" if "allow_pickle" in says else says,
            remedy="save plain numbers with numpy.save or numpy.savez",
        ) from None


def grid(path: Path, first: bytes) -> Look | None:
    """A netCDF, HDF5 or GRIB file by its first bytes, None for another. InputError for a damaged
    one."""
    told = next((name for magic, name in GRIDS.items() if first.startswith(magic)), None)
    if told is None:
        return None
    hdf = (_netcdf, _hdf5) if path.suffix in (".nc", ".nc4") else (_hdf5,)  # netCDF-4 is HDF5
    readers = {"netCDF": (_netcdf,), "HDF5": hdf, "GRIB": (_grib,)}[told]
    note = f"a file of {told}"
    problems = []
    for reader in readers:
        try:
            columns = reader(path)
        except ImportError as error:
            problems.append(f"its variables are listed where {error.name} is installed ({EXTRA})")
        except Exception as error:  # each library has errors of its own
            problems.append(f"its variables cannot be read: {' '.join(str(error).split())[:160]}")
        else:
            if columns:
                return Look("grid", len(columns), columns, notes=(note,))
    return Look("grid", 0, notes=(note, *dict.fromkeys(problems)))


def _netcdf(path: Path) -> tuple[Column, ...]:
    """Variables and axes by xarray, times as the numbers that the file holds."""
    import xarray

    with xarray.open_dataset(path, decode_times=False) as held:
        return tuple(_named(str(name), held[name]) for name in (*held.coords, *held.data_vars))


def _named(name: str, variable: Any) -> Column:
    called = f"{name}({', '.join(map(str, variable.dims))})" if variable.dims else name
    told = str(variable.attrs.get("units", "")) or unit(name)
    if variable.size > READ_MOST:
        shape = "x".join(map(str, variable.shape))
        return Column(f"{called} {shape} {variable.dtype}", told, "", "")
    return column(called, variable.values, told)


def _hdf5(path: Path) -> tuple[Column, ...]:
    """Every array of an HDF5 file, by its path in it."""
    import h5py

    found: list[Column] = []

    def take(name: str, held: Any) -> None:
        if isinstance(held, h5py.Dataset):
            large = held.size is None or held.size > READ_MOST
            shape = "x".join(map(str, held.shape or ()))
            told = held.attrs.get("units", "")
            text = told.decode() if isinstance(told, bytes) else str(told)
            found.append(
                Column(f"{name} {shape} {held.dtype}", text, "", "")
                if large
                else column(name, np.asarray(held[()]), text)
            )

    with h5py.File(path) as file:
        file.visititems(take)
    return tuple(found)


def _grib(path: Path) -> tuple[Column, ...]:
    """Of the first messages each quantity on each kind of level, and how many messages hold it."""
    import eccodes

    counts: Counter[tuple[str, str, str, str]] = Counter()
    keys = ("shortName", "typeOfLevel", "units", "numberOfPoints")
    with path.open("rb") as stream:
        for _ in range(MESSAGES_MOST):
            message = eccodes.codes_grib_new_from_file(stream)
            if message is None:
                break
            name, level, told, points = (eccodes.codes_get_string(message, key) for key in keys)
            counts[name, level, told, points] += 1
            eccodes.codes_release(message)
    return tuple(
        Column(f"{name}({level}) {count} messages of {points} points", told, "", "")
        for (name, level, told, points), count in counts.items()
    )
