"""Rooms with heaters: the solver gives back every temperature of the real files; elements,
transforms and files are checked apart."""

import itertools
import json
import os
from pathlib import Path

import numpy as np
import pydantic
import pytest
from scipy import sparse, stats
from scipy.sparse.linalg import spsolve

from stages.fields import elliptic
from stages.fields.problems.poisson import make as poisson
from stages.params import Poisson

REAL = Path(os.environ.get("TRADEWIND_MIRROR") or "absent") / "pde" / "poisson_inp"
LISTING = Path(__file__).resolve().parents[2] / "data" / "sources" / "poisson_rooms.txt"


def room(*boxes, exterior=0.0):
    return {"boxes": [list(box) for box in boxes], "exterior_temp": exterior}


@pytest.mark.skipif(
    not REAL.is_dir(), reason="TRADEWIND_MIRROR is not set: no real rooms to compare with"
)
def test_every_temperature_of_the_real_rooms_is_given_back():
    """3,200 rooms, 819,200 temperatures of -7 to 7; ten of the hundred layouts have boxes that
    overlap."""
    worst = []
    for k in range(100):
        rooms = json.loads((REAL / f"desc_{k}.json").read_text())
        at = np.rint(100 * np.load(REAL / f"{k}-X.npy")).astype(int)
        found = poisson.temperatures(rooms)[np.arange(32)[:, None], at[..., 0], at[..., 1]]
        worst.append(np.abs(found - np.load(REAL / f"{k}-y.npy")[..., 0]).max())
    assert max(worst) < 1e-12


def test_the_transform_solves_the_five_point_equations():
    n, rng = 13, np.random.default_rng(0)
    f = rng.standard_normal((3, n - 1, n - 1))
    line = sparse.diags([-np.ones(n - 2), 2 * np.ones(n - 1), -np.ones(n - 2)], [-1, 0, 1]) * n**2
    matrix = sparse.csc_matrix(
        sparse.kron(line, sparse.eye(n - 1)) + sparse.kron(sparse.eye(n - 1), line)
    )
    assert elliptic.poisson(f).reshape(3, -1) == pytest.approx(
        spsolve(matrix, f.reshape(3, -1).T).T, rel=1e-11, abs=1e-14
    )


def test_a_product_of_parabolas_is_met_to_rounding():
    """Five-point differences are exact for it: -lap x(1-x)y(1-y) = 2 x(1-x) + 2 y(1-y)."""
    x = np.arange(1, 20) / 20
    hill = x * (1 - x)
    assert elliptic.poisson((2 * (hill[:, None] + hill))[None])[0] == pytest.approx(
        hill[:, None] * hill, abs=1e-15
    )


def integrals(s):
    """Every triangle's integral of s' quadratic interpolant against each corner's linear
    element, by a rule exact to degree five."""
    cells = (len(s) - 1) // 2
    total = np.zeros((cells + 1, cells + 1))
    a, b, root = (6 - np.sqrt(15)) / 21, (6 + np.sqrt(15)) / 21, np.sqrt(15)
    rule = [((1 / 3, 1 / 3, 1 / 3), 9 / 40)]
    for c, weight in ((a, (155 - root) / 1200), (b, (155 + root) / 1200)):
        rule += [
            (place, weight) for place in ((c, c, 1 - 2 * c), (c, 1 - 2 * c, c), (1 - 2 * c, c, c))
        ]
    for i, j in itertools.product(range(cells), repeat=2):
        for corners in (((i, j), (i + 1, j), (i + 1, j + 1)), ((i, j), (i, j + 1), (i + 1, j + 1))):
            for place, weight in rule:
                value = sum(
                    s[2 * p[0], 2 * p[1]] * m * (2 * m - 1)
                    for p, m in zip(corners, place, strict=True)
                )
                for e, g in ((0, 1), (0, 2), (1, 2)):
                    value += (
                        4
                        * place[e]
                        * place[g]
                        * s[corners[e][0] + corners[g][0], corners[e][1] + corners[g][1]]
                    )
                for corner, own in zip(corners, place, strict=True):
                    total[corner] += weight / 2 * value * own
    return total[1:-1, 1:-1]


def test_the_load_is_the_integral_of_the_quadratic_interpolant():
    s = np.random.default_rng(1).standard_normal((2, 11, 11))
    assert poisson.load(s) == pytest.approx(np.stack([integrals(one) for one in s]), abs=1e-13)


def test_a_box_ends_before_its_edge_and_the_later_box_counts():
    s = poisson.sources(
        [
            room((0.25, 0.5, 0.5, 0.75, 3.0)),
            room((0.25, 0.25, 0.5, 0.5, 1.0), (0.375, 0.375, 0.625, 0.625, -2.0)),
        ]
    )
    assert (
        s[0, 50, 120] == s[0, 100, 120] == s[0, 75, 100] == s[0, 75, 150] == 0
        and s[0, 51, 101] == s[0, 99, 149] == 3
    )
    assert s[1, 60, 60] == 1 and s[1, 80, 80] == -2 and set(np.unique(s[1])) == {-2.0, 0.0, 1.0}


def test_heat_leaves_through_the_border_as_fast_as_heaters_give_it():
    one = room((0.3, 0.4, 0.55, 0.6, 100.0), (0.0, 0.1, 0.2, 0.3, -250.0), exterior=0.4)
    u = poisson.temperatures([one])[0]
    out = sum(float((edge - 0.4).sum()) for edge in (u[1], u[-2], u[:, 1], u[:, -2]))
    assert out == pytest.approx(poisson.load(poisson.sources([one])).sum() / 1e4, rel=1e-10)
    assert np.all(u[[0, -1]] == 0.4) and np.all(u[:, [0, -1]] == 0.4)


def test_temperatures_add_up_and_turn_with_the_room():
    first = room((0.3, 0.4, 0.55, 0.6, 100.0))
    second = room((0.7, 0.1, 0.9, 0.3, -50.0), exterior=0.5)
    both, (a, b) = (
        room(*first["boxes"], *second["boxes"], exterior=0.5),
        poisson.temperatures([first, second]),
    )
    assert poisson.temperatures([both])[0] == pytest.approx(a + b, abs=1e-12)
    turned = room((0.4, 0.3, 0.6, 0.55, 100.0))
    assert poisson.temperatures([turned])[0] == pytest.approx(a.T, abs=1e-12)


def made(folder, **changes):
    poisson.make(Poisson(**{"seed": 4, "files": 3} | changes), folder)
    return [json.loads((folder / f"desc_{k}.json").read_text()) for k in range(3)]


def test_simulated_files_look_like_the_real_ones(tmp_path):
    files = made(tmp_path)
    assert len(list(tmp_path.iterdir())) == 9
    for k, rooms in enumerate(files):
        x, y = np.load(tmp_path / f"{k}-X.npy"), np.load(tmp_path / f"{k}-y.npy")
        assert (x.shape, y.shape, x.dtype, y.dtype) == ((32, 256, 2), (32, 256, 1), "<f8", "<f8")
        at = np.rint(100 * x).astype(int)
        assert np.abs(at / 100 - x).max() == 0 and (at.min(), at.max()) == (0, 100)
        assert y[..., 0] == pytest.approx(
            poisson.temperatures(rooms)[np.arange(32)[:, None], at[..., 0], at[..., 1]], abs=1e-13
        )
        border = ((x == 0) | (x == 1)).any(-1)
        assert np.all(
            y[border][:, 0] == np.repeat([room["exterior_temp"] for room in rooms], border.sum(1))
        )
        assert len({json.dumps([box[:4] for box in room["boxes"]]) for room in rooms}) == 1
        if REAL.is_dir():
            real = json.loads((REAL / "desc_0.json").read_text())[0]
            assert (
                rooms[0].keys() == real.keys()
                and (tmp_path / f"{k}-X.npy").stat().st_size == (REAL / "0-X.npy").stat().st_size
            )


def test_rooms_of_one_layout_follow_each_other(tmp_path):
    for rooms in made(tmp_path, layouts_per_file=8):
        layouts = [json.dumps([box[:4] for box in room["boxes"]]) for room in rooms]
        assert [len(list(group)) for _, group in itertools.groupby(layouts)] == [4] * 8


def test_heaters_and_exteriors_follow_their_laws():
    rooms = poisson.describe(np.random.default_rng(0), 32) + poisson.describe(
        np.random.default_rng(1), 32
    )
    rooms += [
        room for seed in range(2, 60) for room in poisson.describe(np.random.default_rng(seed), 32)
    ]
    boxes = np.array([box for room in rooms for box in room["unnorm_boxes"]])
    raw = np.array([box for room in rooms for box in room["boxes"]])
    assert stats.chisquare(np.bincount([len(room["boxes"]) for room in rooms])[1:]).pvalue > 1e-3
    for axis in (0, 1):
        sides = np.rint(100 * (boxes[:, axis + 2] - boxes[:, axis])).astype(int)
        assert stats.chisquare(np.bincount(sides)[5:]).pvalue > 1e-3 and (
            sides.min(),
            sides.max(),
        ) == (5, 25)
    assert boxes[:, :4].min() >= 0 and boxes[:, :4].max() <= 1
    assert stats.kstest(boxes[:, 4], "uniform", (-0.5, 1)).pvalue > 1e-3
    assert raw[:, 4] == pytest.approx(768 * boxes[:, 4]) and np.rint(
        100 * raw[:, 4]
    ) == pytest.approx(100 * raw[:, 4])
    assert (
        stats.chisquare(
            np.bincount(
                np.rint([50 * room["exterior_temp"] + 50 for room in rooms]).astype(int),
                minlength=101,
            )
        ).pvalue
        > 1e-3
    )


def test_a_seed_makes_the_same_bytes_again_and_files_do_not_move_one_another(tmp_path):
    a, b, c = (tmp_path / name for name in "abc")
    for folder in (a, b, c):
        folder.mkdir()
    made(a), made(b, files=4), made(c, seed=5)
    for path in a.iterdir():
        assert path.read_bytes() == (b / path.name).read_bytes() != (c / path.name).read_bytes()


def test_the_listing_pins_the_300_files_of_the_mirror():
    lines = [line.split(" ") for line in LISTING.read_text().splitlines()]
    names = [name for _, _, name in lines]
    assert sorted(names) == sorted(
        name for k in range(100) for name in (f"{k}-X.npy", f"{k}-y.npy", f"desc_{k}.json")
    )
    assert sum(int(size) for _, size, _ in lines) == 20_635_541 and all(
        len(bytes.fromhex(digest)) == 32 for digest, _, _ in lines
    )
    if REAL.is_dir():
        assert all((REAL / name).stat().st_size == int(size) for _, size, name in lines)


@pytest.mark.parametrize(
    "change", [{"files": 2}, {"files": 2001}, {"layouts_per_file": 3}, {"seed": -1}, {"rooms": 32}]
)
def test_plans_that_cannot_be_made_are_refused(change):
    with pytest.raises(pydantic.ValidationError):
        Poisson(**{"seed": 0, "files": 10} | change)
