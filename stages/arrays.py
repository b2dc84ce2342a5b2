"""Files of arrays: .npy read strictly (one array of a known type and shape, whole, finite, and
nothing after it), .npz written the same by every Python.

The header is checked against the file's size before memory is taken, and a file that holds Python
objects or an archive is refused. Units are the raw file's.
"""

import io
import tokenize
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from stages import files
from stages.errors import DataError

BROKEN = (
    ValueError,
    EOFError,
    OSError,
    OverflowError,
    MemoryError,
    SyntaxError,
    tokenize.TokenError,
    zipfile.BadZipFile,
)


def load(path: Path, shape: tuple[int, ...], dtype: str = "float32") -> np.ndarray:
    """The finite array of this shape and type (of either byte order) in a .npy file, in memory.
    DataError for anything else."""
    wanted = f"{dtype} {shape}"
    refused = {"where": str(path), "remedy": "acquire the data set again"}
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise DataError("a raw file is missing", expected=wanted, **refused) from None
    except BROKEN as error:
        found = str(error)[:200] or type(error).__name__
        raise DataError(
            "a raw file is no whole .npy array", expected=wanted, found=found, **refused
        ) from None
    if not isinstance(array, np.memmap):
        raise DataError("a raw file is an archive, not a .npy array", expected=wanted, **refused)
    if array.dtype.newbyteorder("=") != np.dtype(dtype) or array.shape != shape:
        raise DataError(
            "a raw array is not of the type and shape that belong there",
            expected=wanted,
            found=f"{array.dtype} {array.shape}",
            **refused,
        )
    size, whole = path.stat().st_size, array.offset + array.nbytes
    if size != whole:
        raise DataError(
            "a raw file goes on after its array",
            expected=f"{whole} bytes",
            found=f"{size} bytes",
            **refused,
        )
    array = np.array(array, np.dtype(dtype))
    if not np.isfinite(array).all():
        at = tuple(np.argwhere(~np.isfinite(array))[0].tolist())
        raise DataError(
            "a raw array holds numbers that are not finite",
            expected="finite numbers",
            found=f"{array[at]} at {at}",
            **refused,
        )
    return array


def save(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write an archive (.npz) of named arrays, whole.

    NumPy streams each array into the archive before its size is known; what the archive then says
    of the size differs between patches of one Python. Here the size is known first."""
    with files.atomic_file(path) as stream, zipfile.ZipFile(stream, "w") as archive:
        for name, array in arrays.items():
            content = io.BytesIO()
            np.lib.format.write_array(content, np.asanyarray(array), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), content.getvalue())
