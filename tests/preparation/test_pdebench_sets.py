"""PDEBench's Navier-Stokes files: every number is the file's at that node and output, files keep to
one split, and no file reads another.

The files are written as PDEBench writes them (one field a piece, lzf and shuffle) with smaller
sides, and hold numbers that tell where they stand.
"""

import json
import tracemalloc

import numpy as np
import pytest

from stages.errors import DataError, InputError
from stages.fields import problem as table
from stages.fields.problem import Counts
from stages.fields.problems import pdebench

h5py = pytest.importorskip("h5py")
GRID, OUTPUTS, TRAJECTORIES = 8, 54, 2
SIZE = TRAJECTORIES * OUTPUTS * GRID * GRID


def name(number):
    return f"ns_incom_inhom_2d_512-{number}.h5"


def numbers(number, shape=(TRAJECTORIES, OUTPUTS, GRID, GRID, 1)):
    """((file * trajectories + trajectory) * outputs + output) * G^2 + node: whole numbers that
    float32 holds exactly."""
    return (number * np.prod(shape) + np.arange(np.prod(shape))).astype(np.float32).reshape(shape)


def write(path, values, chunked=True):
    """One file as PDEBench's own writer makes it, the other fields small."""
    with h5py.File(path, "w") as file:
        how = (
            {"chunks": (1, 1, *values.shape[2:]), "compression": "lzf", "shuffle": True}
            if chunked
            else {}
        )
        file.create_dataset("particles", data=values, **how)
        file["t"], file["force"], file["velocity"] = (
            np.zeros(values.shape[:2]),
            np.zeros(3),
            np.zeros(3),
        )
    return path


def folder(raw, chosen=(0, 1, 2, 10), chunked=True):
    for number in chosen:
        write(raw / name(number), numbers(number), chunked)
    return raw


@pytest.fixture
def raw(tmp_path):
    return folder(tmp_path)


@pytest.mark.parametrize("chunked", [True, False])
def test_every_value_is_the_files_at_its_node_fifty_outputs_apart(tmp_path, chunked):
    sets = pdebench.read(folder(tmp_path, chunked=chunked), 0, Counts(16, 32))
    table.check(sets, "here")
    assert sets.context_x.shape == (4 * TRAJECTORIES * 4, 16, 2) and sets.target_y.shape == (
        32,
        32,
        1,
    )
    assert sets.files == tuple(map(name, (0, 1, 2, 10)))  # by number, not by letter
    told = {}
    for word, later in (("context", 0), ("target", 50)):
        rest, node = np.divmod(getattr(sets, f"{word}_y")[..., 0].astype(int), GRID * GRID)
        trajectory, output = np.divmod(rest, OUTPUTS)
        file, inside = np.divmod(trajectory, TRAJECTORIES)
        assert (np.array([0, 1, 2, 10])[sets.source][:, None] == file).all()
        assert (
            np.stack([node // GRID, node % GRID], -1) / (GRID / 2) - 1 == getattr(sets, f"{word}_x")
        ).all()
        assert ((inside * 4 + output - later) == sets.record[:, None]).all()
        told[word] = trajectory[:, 0], output[:, 0] - later
        assert all(len(set(row)) == len(row) for row in node.tolist())
    assert all((a == b).all() for a, b in zip(*told.values(), strict=True))
    assert (
        len(set(zip(*(column.tolist() for column in told["context"]), strict=True))) == 32
    )  # every pair once
    assert (sets.loss, sets.standardise, sets.facts["files_again"]) == ("mse", False, [])


def test_positions_are_the_documents_index_over_256_less_1():
    assert pdebench.positions(np.array([0, 511, 512 * 511]), 512).tolist() == [
        [-1, -1],
        [-1, 511 / 256 - 1],
        [511 / 256 - 1, -1],
    ]


@pytest.mark.parametrize("count, train", [(3, 1), (12, 10), (25, 21), (250, 200)])
def test_files_split_in_order_and_the_last_tenths_select_and_test(count, train):
    split = pdebench.parts(count)
    assert (
        len(split) == count
        and (split[:train] == 0).all()
        and (np.diff(split) >= 0).all()
        and (split == 0).sum() == train
    )
    assert (split == 1).sum() == (split == 2).sum() == max(1, count // 10)


def test_no_file_stands_in_two_splits_whatever_the_sets_that_are_drawn(raw):
    for number in (3, 4, 5):
        write(raw / name(number), numbers(number))
    sets = pdebench.read(raw, 3, Counts(4, 4, 30))
    placed = {}
    for file, part in zip(sets.source.tolist(), sets.split.tolist(), strict=True):
        placed.setdefault(file, set()).add(part)
    assert len(sets.split) == 30 and all(len(parts) == 1 for parts in placed.values())
    assert sets.split.max() == 2 and {file for file, part in placed.items() if part == {2}} == {
        6
    }  # number 10 is the last


def test_a_file_again_under_another_number_is_left_out_and_told(raw):
    """24 of the 274 files that are published are copies of others: learned from in one, asked
    for in the other."""
    write(raw / name(3), numbers(0))
    half = numbers(4)
    half[1] = numbers(1)[0]  # one trajectory of another file is enough
    write(raw / name(4), half)
    sets = pdebench.read(raw, 0, Counts(16, 16))
    assert sets.files == tuple(map(name, (0, 1, 2, 10)))
    assert sets.facts["files_again"] == [f"{name(3)} as {name(0)}", f"{name(4)} as {name(1)}"]
    (raw / name(10)).unlink()
    (raw / name(2)).unlink()
    with pytest.raises(DataError, match="too few files") as caught:
        pdebench.read(raw, 0, Counts(16, 16))
    assert f"{name(3)} as {name(0)}" in caught.value.found


def test_the_seed_decides_everything_and_the_number_of_targets_not_the_context(raw):
    a, b, c = (pdebench.read(raw, seed, Counts(16, 32)) for seed in (0, 0, 1))
    for part in ("context_x", "context_y", "target_x", "target_y"):
        assert (getattr(a, part) == getattr(b, part)).all() and not (
            getattr(a, part) == getattr(c, part)
        ).all()
    assert (pdebench.read(raw, 0, Counts(16, 5)).context_x == a.context_x).all()
    assert (a.split == c.split).all()


def test_a_field_is_in_memory_at_a_time_never_a_trajectory(tmp_path):
    """The peak of what Python and NumPy hold, for a file of 200 fields of 64 KiB: a few of them,
    where all are 12.5 MiB."""
    shape = (2, 100, 128, 128, 1)
    for number in range(3):
        write(tmp_path / name(number), np.random.default_rng(number).random(shape, np.float32))
    pdebench.read(tmp_path, 0, Counts(8, 8, 4))  # imports and caches
    tracemalloc.start()
    sets = pdebench.read(tmp_path, 0, Counts(8, 8, 60))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(sets.split) == 60 and peak < 16 * 128 * 128 * 4


def test_only_fields_with_a_point_in_a_set_are_read(raw, monkeypatch):
    read, whole = [], pdebench.field
    monkeypatch.setattr(
        pdebench,
        "field",
        lambda path, data, *at: read.append((path.name, *at)) or whole(path, data, *at),
    )
    sets = pdebench.read(raw, 0, Counts(4, 4, 5))
    begins = 4 * TRAJECTORIES
    wanted = {
        (sets.files[file], *at)
        for file, record in zip(sets.source, sets.record, strict=True)
        for at in ((record // 4, record % 4), (record // 4, record % 4 + 50))
    }
    assert len(read) == begins + len(wanted) and set(read[begins:]) == wanted


def test_sets_are_written_with_what_was_counted(raw, tmp_path):
    sets = pdebench.read(raw, 0, Counts(16, 16))
    table.write(sets, tmp_path, {})
    told = json.loads((tmp_path / "sets.json").read_text())
    assert told["counts"] == {"train": 16, "val": 8, "test": 8} and told["names"]["i"] == [
        "particles"
    ]
    assert told["facts"] == {
        "trajectories": 8,
        "pairs_per_trajectory": 4,
        "gap_outputs": 50,
        "grid": GRID,
        "files": 4,
        "files_again": [],
    }


def remake(path, make):
    path.unlink()
    with h5py.File(path, "w") as file:
        make(file, path)


def external(file, path):
    file["particles"] = h5py.ExternalLink("other.h5", "/particles")


def virtual(file, path):
    layout = h5py.VirtualLayout((TRAJECTORIES, OUTPUTS, GRID, GRID, 1), np.float32)
    layout[...] = h5py.VirtualSource(str(path.parent / name(0)), "particles", layout.shape)
    file.create_virtual_dataset("particles", layout)


def elsewhere(file, path):
    (path.parent / "secret").write_bytes(b"0" * SIZE * 4)
    file.create_dataset(
        "particles",
        (TRAJECTORIES, OUTPUTS, GRID, GRID, 1),
        "f4",
        external=[(str(path.parent / "secret"), 0, SIZE * 4)],
    )


def soft(file, path):
    file["velocity"] = numbers(1)
    file["particles"] = h5py.SoftLink("/velocity")


def unwritten(file, path):
    data = file.create_dataset(
        "particles",
        (TRAJECTORIES, OUTPUTS, GRID, GRID, 1),
        "f4",
        chunks=(1, 1, GRID, GRID, 1),
        compression="lzf",
    )
    data[0] = numbers(1)[0]


def never(file, path):
    file.create_dataset("particles", (TRAJECTORIES, OUTPUTS, GRID, GRID, 1), "f4")


def large(file, path):
    file.create_dataset(
        "particles", (1, 60, 1024, 1024, 1), "f4", chunks=(1, 17, 1024, 1024, 1), compression="gzip"
    )


def scaled(file, path):
    file.create_dataset("particles", data=numbers(1), scaleoffset=3, chunks=(1, 1, GRID, GRID, 1))


def with_nan(file, path):
    values = numbers(1)
    values[1, 3, 4, 5] = np.nan
    file["particles"] = values


@pytest.mark.parametrize(
    "make, told",
    [
        (external, "link to elsewhere"),
        (soft, "link to elsewhere"),
        (virtual, "other files"),
        (elsewhere, "other files"),
        (unwritten, "never written whole"),
        (never, "never written whole"),
        (large, "too large pieces"),
        (scaled, "unknown filter"),
        (with_nan, "not finite"),
        (lambda f, p: f.create_group("particles"), "no array"),
        (lambda f, p: None, "no `particles`"),
        (lambda f, p: f.create_dataset("velocity", data=numbers(1)), "no `particles`"),
        (
            lambda f, p: f.create_dataset("particles", data=numbers(1).astype(float)),
            "another kind or shape",
        ),
        (
            lambda f, p: f.create_dataset("particles", data=numbers(1)[..., 0]),
            "another kind or shape",
        ),
        (
            lambda f, p: f.create_dataset("particles", data=numbers(1)[:, :, 1:]),
            "another kind or shape",
        ),
        (lambda f, p: f.create_dataset("particles", data=["a", "b"]), "another kind or shape"),
        (
            lambda f, p: f.create_dataset("particles", data=h5py.Empty("f4")),
            "another kind or shape",
        ),
        (lambda f, p: f.create_dataset("particles", data=numbers(1)[:0]), "another kind or shape"),
        (lambda f, p: f.create_dataset("particles", data=numbers(1)[:, :50]), "too short"),
        (lambda f, p: f.create_dataset("particles", data=numbers(1)[:, :53]), "differ in outputs"),
    ],
)
def test_what_is_not_a_file_of_theirs_is_refused_by_name(raw, make, told):
    remake(raw / name(1), make)
    with pytest.raises(DataError) as caught:
        pdebench.read(raw, 0, Counts(16, 32))
    assert (
        told in caught.value.what
        and caught.value.where == str(raw / name(1))
        and caught.value.remedy
    )


@pytest.mark.parametrize(
    "spoil",
    [
        lambda b: b[:-999],
        lambda b: b[: len(b) // 2],
        lambda b: b"",
        lambda b: b"<html>sign in</html>",
        lambda b: b[:8] + bytes(200) + b[208:],
    ],
)
def test_a_file_cut_short_or_none_at_all_is_refused_by_name(raw, spoil):
    path = raw / name(1)
    path.write_bytes(spoil(path.read_bytes()))
    with pytest.raises(DataError, match="no whole HDF5") as caught:
        pdebench.read(raw, 0, Counts(16, 32))
    assert caught.value.where == str(path)


def test_damage_within_a_packed_field_is_told_by_name(raw):
    path = raw / name(1)
    with h5py.File(path) as file:
        info = file["particles"].id.get_chunk_info(3)
    with path.open("r+b") as file:
        file.seek(info.byte_offset)
        file.write(b"\xff" * info.size)
    with pytest.raises(DataError, match="cannot be unpacked|not finite") as caught:
        pdebench.read(raw, 0, Counts(16, 32))
    assert caught.value.where == str(path) and "trajectory 0, output 3" in caught.value.found


@pytest.mark.parametrize("counts", [Counts(65, 1), Counts(1, 65)])
def test_more_points_than_nodes_are_the_users_mistake(raw, counts):
    with pytest.raises(InputError, match="more points than the grid has nodes"):
        pdebench.read(raw, 0, counts)


def test_two_files_and_none_are_too_few(tmp_path):
    with pytest.raises(DataError, match="too few"):
        pdebench.read(tmp_path / "nowhere", 0, Counts(4, 4))
    with pytest.raises(DataError, match="too few"):
        pdebench.read(folder(tmp_path, (0, 1)), 0, Counts(4, 4))


def test_without_h5py_the_remedy_is_named(raw, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "h5py", None)
    with pytest.raises(InputError, match="without h5py") as caught:
        pdebench.read(raw, 0, Counts(4, 4))
    assert "era5" in caught.value.remedy
