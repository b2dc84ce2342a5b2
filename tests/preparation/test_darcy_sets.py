"""Darcy archives become sets: read as PyTorch reads them, without it and without running
anything in them; all else is refused."""

import io
import os
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

from stages.errors import DataError, InputError
from stages.fields import problem as sets
from stages.fields.problem import Counts
from stages.fields.problems.darcy import make as simulator
from stages.fields.problems.darcy import read as darcy
from stages.params import Darcy

REAL = Path(os.environ.get("TRADEWIND_MIRROR") or "absent") / "pde" / "darcy"
real = pytest.mark.skipif(
    not REAL.is_dir(), reason="TRADEWIND_MIRROR is not set: no real samples to read"
)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("media")
    simulator.make(Darcy(seed=1, train=60, test=20, lattice=16, refinement=1), folder)
    return folder


@pytest.fixture
def raw(made, tmp_path):
    return shutil.copytree(made, tmp_path / "raw")


@real
@pytest.mark.parametrize("name", ["darcy_train_16.pt", "darcy_test_16.pt"])
def test_the_real_archives_are_read_as_pytorch_reads_them(name):
    kept, (x, y) = torch.load(REAL / name, weights_only=True), darcy.unpack(REAL / name)
    assert x.dtype == bool and y.dtype == np.float64
    assert np.array_equal(x, kept["x"].numpy()) and np.array_equal(
        y.astype("f4"), kept["y"].numpy()
    )


@pytest.mark.parametrize("shape", [(1, 4, 4), (300, 4, 4), (70_000, 2, 2)])
@pytest.mark.parametrize("rows", [True, False])
def test_archives_that_pytorch_writes_are_read(tmp_path, shape, rows):
    """In both orders of memory, with numbers of one, two and four bytes in the description."""
    x = torch.rand(shape, generator=torch.Generator().manual_seed(0)) < 0.5
    y = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    if not rows:
        x, y = (part.permute(2, 1, 0).contiguous().permute(2, 1, 0) for part in (x, y))
    torch.save({"x": x, "y": y}, tmp_path / "a.pt")
    found = darcy.unpack(tmp_path / "a.pt")
    assert np.array_equal(found[0], x.numpy()) and np.array_equal(found[1], y.double().numpy())


def test_archives_of_ours_are_read(made):
    kept, (x, y) = (
        torch.load(made / "darcy_train_16.pt", weights_only=True),
        darcy.unpack(made / "darcy_train_16.pt"),
    )
    assert np.array_equal(x, kept["x"].numpy()) and np.array_equal(
        y.astype("f4"), kept["y"].numpy()
    )


class Runs:
    """What a hostile archive would have done on loading."""

    def __reduce__(self):
        return (Path("stolen").touch, ())


OTHERS = {
    "a list": [torch.ones(2, 2)],
    "other names": {"a": torch.ones(1, 2, 2, dtype=bool), "b": torch.ones(1, 2, 2)},
    "doubles": {"x": torch.ones(1, 2, 2, dtype=bool), "y": torch.ones(1, 2, 2).double()},
    "x in floats": {"x": torch.ones(1, 2, 2), "y": torch.ones(1, 2, 2)},
    "unlike shapes": {"x": torch.ones(1, 2, 2, dtype=bool), "y": torch.ones(2, 2, 2)},
    "no square": {"x": torch.ones(1, 2, 3, dtype=bool), "y": torch.ones(1, 2, 3)},
    "two axes": {"x": torch.ones(2, 2, dtype=bool), "y": torch.ones(2, 2)},
    "more": {"x": torch.ones(1, 2, 2, dtype=bool), "y": torch.ones(1, 2, 2), "z": torch.ones(1)},
    "a part of a larger array": {
        "x": torch.ones(2, 2, 2, dtype=bool)[1:],
        "y": torch.ones(2, 2, 2)[1:],
    },
    "nothing": {},
    "code": {"x": Runs(), "y": torch.ones(1, 2, 2)},
}


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.fault("F13")
def test_archives_of_anything_else_are_refused_and_nothing_in_them_is_run(
    tmp_path, monkeypatch, name
):
    monkeypatch.chdir(tmp_path)
    torch.save(OTHERS[name], tmp_path / "a.pt")
    with pytest.raises(DataError, match="not laid out") as error:
        darcy.unpack(tmp_path / "a.pt")
    assert error.value.found and not Path("stolen").exists()


def again(path, compression=zipfile.ZIP_STORED, **changes):
    """The archive written anew with some members changed, or left out where None; `name` of a
    member with _ for / and dot."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    for name in list(parts):
        short = name.split("/", 1)[1].replace("/", "_").replace(".", "_")
        if short in changes:
            parts[name] = changes[short]
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        for name, content in parts.items():
            if content is not None:
                archive.writestr(name, content)
    path.write_bytes(out.getvalue())


def bytes_of(path, member):
    with zipfile.ZipFile(path) as archive:
        return archive.read(f"archive/{member}")


def flipped(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def infinite(path):
    y = np.frombuffer(bytes_of(path, "data/1"), "<f4").copy()
    y[77] = np.inf
    again(path, data_1=y.tobytes())


DAMAGE = {
    "cut short": (lambda path: path.write_bytes(path.read_bytes()[:-100]), "no whole archive"),
    "a flipped bit": (flipped, "no whole archive"),
    "empty": (lambda path: path.write_bytes(b""), "no whole archive"),
    "an archive of nothing": (lambda path: zipfile.ZipFile(path, "w").close(), "no description"),
    "compressed": (lambda path: again(path, zipfile.ZIP_DEFLATED), "no description"),
    "no description": (lambda path: again(path, data_pkl=None), "no description"),
    "a broken description": (
        lambda path: again(path, data_pkl=bytes_of(path, "data.pkl")[:-40]),
        "damaged",
    ),
    "no numbers": (lambda path: again(path, data_1=None), "do not fill"),
    "fewer numbers": (
        lambda path: again(path, data_1=bytes_of(path, "data/1")[:-4]),
        "do not fill",
    ),
    "a bool of two": (
        lambda path: again(path, data_0=b"\x02" + bytes_of(path, "data/0")[1:]),
        "not bool",
    ),
    "an infinite number": (infinite, "place 77"),
    "the other byte order": (lambda path: again(path, byteorder=b"big"), "byte order"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_archives_are_refused_and_the_message_names_the_file(raw, name):
    damage, told = DAMAGE[name]
    damage(raw / "darcy_train_16.pt")
    with pytest.raises(DataError, match=told) as error:
        darcy.read(raw, 0, Counts(64, 64))
    assert "darcy_train_16.pt" in error.value.where and error.value.found and error.value.expected


def renamed(raw, old, new):
    (raw / old).rename(raw / new)


FOLDERS = {
    "no test": lambda raw: (raw / "darcy_test_16.pt").unlink(),
    "two trains": lambda raw: shutil.copy(raw / "darcy_train_16.pt", raw / "darcy_train_8.pt"),
    "names of two lattices": lambda raw: renamed(raw, "darcy_test_16.pt", "darcy_test_8.pt"),
    "another lattice than the name's": lambda raw: [
        renamed(raw, f"darcy_{part}_16.pt", f"darcy_{part}_32.pt") for part in ("train", "test")
    ],
    "one sample": lambda raw: simulator.write(
        raw / "darcy_train_16.pt", np.ones((1, 16, 16)), np.ones((1, 16, 16))
    ),
    "nothing": shutil.rmtree,
}


@pytest.mark.parametrize("name", FOLDERS)
def test_folders_that_hold_no_pair_are_refused(raw, name):
    FOLDERS[name](raw)
    with pytest.raises(DataError) as error:
        darcy.read(raw, 0, Counts(64, 64))
    assert error.value.expected and error.value.found and str(raw) in error.value.where


def test_a_lattice_that_is_not_known_is_refused(tmp_path):
    for part in ("train", "test"):
        simulator.write(
            tmp_path / f"darcy_{part}_21.pt", np.ones((4, 21, 21)), np.ones((4, 21, 21))
        )
    with pytest.raises(DataError, match="divisor of 1024"):
        darcy.read(tmp_path, 0, Counts(4, 4))


@pytest.mark.parametrize(
    ("counts", "told"), [(Counts(257, 1), "context"), (Counts(1, 257), "targets")]
)
def test_more_points_than_the_lattice_has_are_the_users_mistake(made, counts, told):
    with pytest.raises(InputError, match=f"{told}(.|\n)*at most 256"):
        darcy.read(made, 0, counts)


def test_points_carry_the_phase_and_the_solution_of_their_place(made):
    found = darcy.read(made, 0, Counts(50, 100))
    sets.check(found, "here")
    for s in range(0, 80, 9):
        x, y = darcy.unpack(made / found.files[found.source[s]])
        at, there = (
            np.rint(16 * places).astype(int) for places in (found.context_x[s], found.target_x[s])
        )
        assert len({*map(tuple, at)}) == 50 and len({*map(tuple, there)}) == 100
        assert np.array_equal(found.context_y[s, :, 0], x[found.record[s]][tuple(at.T)])
        assert np.array_equal(found.target_y[s, :, 0], y[found.record[s]][tuple(there.T)])
    assert (found.context_x.min(), found.context_x.max()) == (0, 15 / 16)


def test_points_are_drawn_evenly_and_context_and_targets_each_for_itself(made):
    found = darcy.read(made, 0, Counts(64, 64))
    at, there = (np.rint(16 * places) @ [16, 1] for places in (found.context_x, found.target_x))
    for places in (at, there):
        counts = np.bincount(
            places.astype(int).ravel(), minlength=256
        )  # of 80 draws, each in a set with probability 1/4
        assert counts.sum() == 80 * 64 and np.abs(counts - 20).max() < 5 * np.sqrt(80 * 3 / 16)
    shared = np.mean([len(set(a) & set(b)) for a, b in zip(at, there, strict=True)])
    assert shared == pytest.approx(16, abs=1.5)  # 64 * 64 / 256


def test_the_train_files_last_tenth_is_for_validation(made):
    found = darcy.read(made, 0, Counts(8, 8))
    assert np.bincount(found.split).tolist() == [54, 6, 20]
    assert found.record[found.split == 1].tolist() == list(range(54, 60)) and set(
        found.source[found.split == 2]
    ) == {1}
    assert len(set(found.group.tolist())) == 80


def test_a_seed_draws_the_same_and_fewer_sets_are_some_of_all(made):
    one, two, other, whole = (
        darcy.read(made, seed, Counts(8, 8, number))
        for seed, number in ((0, 30), (0, 30), (1, 30), (0, None))
    )
    assert np.array_equal(one.context_x, two.context_x) and not np.array_equal(
        one.group, other.group
    )
    assert np.array_equal(whole.context_x[one.group], one.context_x) and np.array_equal(
        whole.target_y[one.group], one.target_y
    )


@pytest.mark.parametrize(("overlap", "own"), [(0, 0), (2, 1), (25, 8), (50, 16), (100, 32)])
def test_with_an_overlap_targets_keep_to_a_quarter_and_that_share_of_the_context_too(
    made, overlap, own
):
    found = darcy.read(made, 0, Counts(32, 32, overlap=overlap))
    plain = darcy.read(made, 0, Counts(32, 32))
    sets.check(found, "here")
    assert (found.target_x < 0.5).all() and ((found.context_x < 0.5).all(2).sum(1) == own).all()
    for places in (found.context_x, found.target_x):
        assert all(len({*map(tuple, one)}) == 32 for one in places.tolist())  # none twice
    assert np.array_equal(found.split, plain.split) and np.array_equal(found.record, plain.record)
    assert np.array_equal(
        found.target_x, darcy.read(made, 0, Counts(16, 32, overlap=50)).target_x
    )  # the same question at every overlap
    x, y = darcy.unpack(made / found.files[found.source[3]])
    at, there = (
        np.rint(16 * places[3]).astype(int) for places in (found.context_x, found.target_x)
    )
    assert np.array_equal(found.context_y[3, :, 0], x[found.record[3]][tuple(at.T)])
    assert np.array_equal(found.target_y[3, :, 0], y[found.record[3]][tuple(there.T)])


@pytest.mark.parametrize(
    ("counts", "told"),
    [
        (Counts(8, 65, overlap=0), "targets"),
        (Counts(130, 8, overlap=50), "context"),
        (Counts(193, 8, overlap=0), "context"),
    ],
)
def test_more_points_than_a_part_of_the_lattice_has_are_the_users_mistake(made, counts, told):
    with pytest.raises(InputError, match=f"{told}, overlap(.|\n)*at most"):
        darcy.read(made, 0, counts)


@real
def test_the_real_samples_become_sets():
    found = darcy.read(REAL, 0, Counts(64, 256))
    sets.check(found, "real")
    assert (
        np.bincount(found.split).tolist() == [900, 100, 50]
        and found.loss == "rmse"
        and found.standardise
    )
    assert found.target_y[found.source == 0].mean() == pytest.approx(
        0.386, abs=1e-3
    ) and found.target_y.min() == pytest.approx(-0.428, abs=1e-3)


def test_a_medium_of_the_test_file_that_the_train_file_holds_is_a_leak(raw):
    """Other points are drawn of it in each place, so that no two sets are equal."""
    sets.check(darcy.read(raw, 0, Counts(8, 8)), str(raw))
    learned = darcy.unpack(raw / "darcy_train_16.pt")
    tested = darcy.unpack(raw / "darcy_test_16.pt")
    for train, test in zip(learned, tested, strict=True):
        test[1] = train[0]
    simulator.write(raw / "darcy_test_16.pt", *tested)
    made = darcy.read(raw, 0, Counts(8, 8))
    assert not np.array_equal(made.context_x[0], made.context_x[len(learned[0]) + 1])
    with pytest.raises(DataError, match="stands in two splits"):
        sets.check(made, str(raw))
