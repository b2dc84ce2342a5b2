"""Archives of arrays: the same bytes from every Python, whatever else it is."""

import hashlib
import struct

import numpy as np
import pytest

from stages import arrays

EXPECTED = "cdb9baebf65f9488ca2ef7a41be61bc01b51f65879a9fd222184faca52a855f0"
TWO = {"a": np.arange(6, dtype=np.int64).reshape(2, 3), "b": np.array([0.5, -0.5])}


def test_an_archive_gives_back_what_was_saved(tmp_path):
    arrays.save(tmp_path / "two.npz", TWO)
    with np.load(tmp_path / "two.npz", allow_pickle=False) as found:
        assert list(found) == list(TWO)
        for name, array in TWO.items():
            assert found[name].dtype == array.dtype
            np.testing.assert_array_equal(found[name], array)


def test_an_archive_says_each_size_where_the_array_begins_as_every_python_writes_it(tmp_path):
    arrays.save(tmp_path / "two.npz", TWO)
    content = (tmp_path / "two.npz").read_bytes()
    version, size, extra = (
        struct.unpack_from("<H", content, 4)[0],
        struct.unpack_from("<I", content, 22)[0],
        struct.unpack_from("<H", content, 28)[0],
    )
    assert (version, size, extra) == (20, 128 + 48, 0), "no part whose form is a patch's"
    # seen alike from Python 3.11.2 and 3.11.7, which write numpy.savez' archives otherwise
    assert hashlib.sha256(content).hexdigest() == EXPECTED


def test_objects_are_no_arrays_and_leave_no_file(tmp_path):
    with pytest.raises(ValueError, match="[Oo]bject"):
        arrays.save(tmp_path / "no.npz", {"a": np.array([{}], dtype=object)})
    assert list(tmp_path.iterdir()) == []
