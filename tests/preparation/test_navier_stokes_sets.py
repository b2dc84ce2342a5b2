"""Navier-Stokes sets: every number is the field's at that node and time, trajectories keep to one
split, damage is told by name.

The raw files hold numbers that tell where they stand (trajectory, output, node), so each value of a
set names its own origin.
"""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.errors import DataError, InputError
from stages.fields import problem as table
from stages.fields.problem import Counts
from stages.fields.problems.navier_stokes import make as simulation
from stages.fields.problems.navier_stokes import read as navier_stokes
from stages.params import NavierStokes

GRID, OUTPUTS, FILES, SPLIT = 8, 54, (3, 4, 1), {"train": 5, "val": 2, "test": 1}


def write(folder, grid=GRID, outputs=OUTPUTS, files=FILES, split=SPLIT):
    """Raw files whose value is ((trajectory * outputs) + output) * grid^2 + node: whole numbers
    that float32 holds exactly."""
    begin = 0
    for k, n in enumerate(files):
        size = n * outputs * grid * grid
        assert begin + size < 2**24
        np.save(
            folder / f"vorticity-{k}.npy",
            np.arange(begin, begin + size, dtype=np.float32).reshape(n, outputs, grid, grid),
        )
        begin += size
    (folder / "meta.json").write_text(
        json.dumps({"grid": grid, "outputs": outputs, "trajectories": list(files), "split": split})
    )
    return folder


@pytest.fixture
def raw(tmp_path):
    return write(tmp_path)


def origin(values, outputs=OUTPUTS, grid=GRID):
    """Trajectory, output and place (x, y), each of the values' shape, that the values (S, P, 1)
    name."""
    rest, node = np.divmod(values[..., 0].astype(int), grid * grid)
    trajectory, output = np.divmod(rest, outputs)
    return trajectory, output, np.stack([node // grid, node % grid], -1) / (grid / 2) - 1


def holds(sets, files, outputs, grid, split):
    """The law of the sets, checked from the values alone."""
    (whose, now, here), (same, later, there) = (
        origin(values, outputs, grid) for values in (sets.context_y, sets.target_y)
    )
    trajectory, t = whose[:, 0], now[:, 0]
    assert (whose == trajectory[:, None]).all() and (same == trajectory[:, None]).all()
    assert (now == t[:, None]).all() and (later == t[:, None] + 50).all()
    assert (here == sets.context_x).all() and (there == sets.target_x).all()
    first = np.cumsum([0, *files])
    assert (
        first[sets.source] * (outputs - 50) + sets.record == trajectory * (outputs - 50) + t
    ).all()
    assert (sets.group == trajectory).all() and ((t >= 0) & (t < outputs - 50)).all()
    for points in (sets.context_x, sets.target_x):
        assert all(len(np.unique(one, axis=0)) == len(one) for one in points)
    placed = {}
    for one, part in zip(trajectory.tolist(), sets.split.tolist(), strict=True):
        placed.setdefault(one, set()).add(part)
    assert all(len(parts) == 1 for parts in placed.values())
    if len(placed) == sum(files):
        assert np.bincount([min(parts) for parts in placed.values()], minlength=3).tolist() == [
            split[name] for name in table.SPLITS
        ]


def test_every_value_is_the_fields_at_its_node_fifty_outputs_apart(raw):
    sets = navier_stokes.read(raw, 0, Counts(16, 32))
    assert (
        sets.context_x.shape == (32, 16, 2)
        and sets.target_y.shape == (32, 32, 1)
        and sets.context_x.dtype == np.float64
    )
    holds(sets, FILES, OUTPUTS, GRID, SPLIT)
    table.check(sets, "here")
    assert (sets.loss, sets.standardise, sets.files) == (
        "mse",
        False,
        ("vorticity-0.npy", "vorticity-1.npy", "vorticity-2.npy"),
    )
    assert np.bincount(sets.split).tolist() == [20, 8, 4]
    assert len(set(zip(sets.source.tolist(), sets.record.tolist(), strict=True))) == 32


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_no_seed_or_shape_lets_a_trajectory_into_two_splits(tmp_path_factory, data):
    files = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    total, grid, outputs = sum(files), data.draw(st.integers(2, 7)), data.draw(st.integers(51, 56))
    val = data.draw(st.integers(0, total))
    split = {"train": total - val, "val": val // 2, "test": val - val // 2}
    raw = write(tmp_path_factory.mktemp("raw"), grid, outputs, files, split)
    counts = Counts(
        *(data.draw(st.integers(1, grid * grid)) for _ in range(2)),
        data.draw(st.none() | st.integers(1, 20)),
    )
    sets = navier_stokes.read(raw, data.draw(st.integers(0, 1000)), counts)
    assert len(sets.split) == min(counts.sets or 10**9, total * (outputs - 50))
    holds(sets, files, outputs, grid, split)


def test_nodes_are_drawn_evenly_anew_for_every_set_and_apart_for_context_and_targets():
    grid, n = 8, 4000
    drawn = navier_stokes.nodes(np.random.default_rng(0), n, 16, grid)
    often = np.bincount(drawn.ravel(), minlength=64)
    assert np.abs(often - n / 4).max() < 5 * np.sqrt(n / 4 * 0.75)
    first = np.bincount(drawn[:, 0], minlength=64)
    assert np.abs(first - n / 64).max() < 5 * np.sqrt(
        n / 64
    )  # nor does the order in a set tell anything
    assert navier_stokes.positions(np.array([0, 1, 8, 63]), 8).tolist() == [
        [-1, -1],
        [-1, -0.75],
        [-0.75, -1],
        [0.75, 0.75],
    ]


def test_context_and_targets_of_a_set_are_different_draws(raw):
    sets = navier_stokes.read(raw, 0, Counts(16, 16))
    assert not (sets.context_x == sets.target_x).all((1, 2)).any()
    assert len(np.unique(sets.context_x, axis=0)) == len(sets.context_x)


def test_the_seed_decides_everything_and_the_number_of_targets_not_the_context(raw):
    a, b, c = (navier_stokes.read(raw, seed, Counts(16, 32)) for seed in (0, 0, 1))
    for name in ("context_x", "context_y", "target_x", "target_y", "split"):
        assert (getattr(a, name) == getattr(b, name)).all() and not (
            getattr(a, name) == getattr(c, name)
        ).all()
    assert (navier_stokes.read(raw, 0, Counts(16, 5)).context_x == a.context_x).all()


def test_the_simulation_is_read_and_written_whole(tmp_path):
    plan = NavierStokes(
        seed=1,
        grid=16,
        train=3,
        val=1,
        test=1,
        per_file=2,
        viscosity=1e-3,
        gain=686.0,
        interval=0.2,
        steps_per_output=4,
        outputs=53,
    )
    simulation.make(plan, tmp_path)
    sets = navier_stokes.read(tmp_path, 0, Counts(64, 256))
    table.check(sets, "here")
    table.write(sets, tmp_path, {})
    meta = json.loads((tmp_path / "sets.json").read_text())
    assert (
        meta["counts"] == {"train": 9, "val": 3, "test": 3}
        and meta["facts"]["pairs_per_trajectory"] == 3
    )
    fields = np.concatenate([np.load(tmp_path / name) for name in sets.files])
    t = sets.record % 3
    assert (
        np.sort(sets.target_y[..., 0]) == np.sort(fields[sets.group, t + 50].reshape(15, -1))
    ).all()  # all 256 nodes are targets


def spoiled(raw, name, change):
    """Rewrite one raw file: bytes to bytes, or array to array, or meta to meta."""
    path = raw / name
    if name == "meta.json":
        meta = json.loads(path.read_text())
        path.write_text(json.dumps(meta | change) if isinstance(change, dict) else change)
    elif change is None:
        path.unlink()
    elif isinstance(change, str):
        path.write_bytes(
            {
                "cut": path.read_bytes()[:-7],
                "long": path.read_bytes() + b"1",
                "none": b"",
                "text": b"vorticity",
            }[change]
        )
    else:
        np.save(path, change(np.load(path)))


def with_nan(array):
    array[1, 2, 3, 4] = np.nan
    return array


@pytest.mark.parametrize(
    "name, change, told",
    [
        ("vorticity-1.npy", None, "missing"),
        ("vorticity-1.npy", "cut", "no whole"),
        ("vorticity-1.npy", "none", "no whole"),
        ("vorticity-1.npy", "text", "no whole"),
        ("vorticity-1.npy", "long", "goes on"),
        ("vorticity-1.npy", with_nan, "not finite"),
        ("vorticity-1.npy", lambda a: a.astype(object), "no whole"),
        ("vorticity-1.npy", lambda a: a.astype(float), "found float64"),
        ("vorticity-1.npy", lambda a: a[:3], "found float32 (3, 54, 8, 8)"),
        ("vorticity-1.npy", lambda a: a[..., None], "found float32 (4, 54, 8, 8, 1)"),
        ("meta.json", {"outputs": 50}, "found 50"),
        ("meta.json", {"outputs": 54.0}, "`outputs`"),
        ("meta.json", {"grid": True}, "`grid`"),
        ("meta.json", {"grid": 9}, "found float32 (3, 54, 8, 8)"),
        ("meta.json", {"trajectories": []}, "`trajectories`"),
        ("meta.json", {"trajectories": [3, 4, 2]}, "disagree"),
        ("meta.json", {"split": {"train": 8}}, "`split`"),
        ("meta.json", {"split": {"train": -1, "val": 5, "test": 4}}, "`split`"),
        ("meta.json", "[]", "other JSON than it should"),
        ("meta.json", "{", "not JSON"),
        ("meta.json", '{"grid": NaN}', "NaN"),
    ],
)
def test_damage_is_told_by_name(raw, name, change, told):
    spoiled(raw, name, change)
    with pytest.raises(DataError) as caught:
        navier_stokes.read(raw, 0, Counts(16, 32))
    assert told in f"{caught.value.what} found {caught.value.found}"
    assert caught.value.where == str(raw / ("vorticity-0.npy" if change == {"grid": 9} else name))


def test_an_archive_and_a_header_beyond_the_file_are_refused(raw):
    with (raw / "vorticity-0.npy").open("wb") as file:
        np.savez(file, a=np.zeros(3))
    with pytest.raises(DataError, match="archive"):
        navier_stokes.read(raw, 0, Counts(16, 32))
    with (raw / "vorticity-0.npy").open("wb") as file:
        np.lib.format.write_array_header_1_0(
            file, {"descr": "<f4", "fortran_order": False, "shape": (10**9, 10**9)}
        )
    with pytest.raises(DataError, match="no whole"):
        navier_stokes.read(raw, 0, Counts(16, 32))
    (raw / "vorticity-0.npy").write_bytes(b"PK\x03\x04 no archive either")
    with pytest.raises(DataError, match="no whole"):
        navier_stokes.read(raw, 0, Counts(16, 32))


@pytest.mark.parametrize("counts", [Counts(65, 1), Counts(1, 65)])
def test_more_points_than_nodes_are_the_users_mistake(raw, counts):
    with pytest.raises(InputError, match="more points than the grid has nodes"):
        navier_stokes.read(raw, 0, counts)
