"""The bias of Algorithm 3 in the report: every sampler's row, what the table says of it, and the
figure's lines and levels."""

import json

import pytest
from PIL import Image

from stages.figures import drawing
from stages.figures.drawing import plt
from stages.sequences.reporting import bias as order_bias


def one(variation: float, p: float = 0.4) -> dict:
    return {
        "total_variation": variation,
        "chi_square": 1234.5,
        "degrees": 15,
        "p": p,
        "passes": 2.5,
    }


@pytest.fixture
def bias() -> dict:
    floor = {"mean": 0.004, "high": 0.006}
    burst = {"1": one(0.07, 1e-30), "5": one(0.17, 0.0), "20": one(0.23, 0.0)}
    flat = {count: one(0.005) for count in burst}
    return {
        name: {
            "sequences": 16,
            "draws": 100_000,
            "floor": floor,
            "burst": found,
            "exact": one(0.003),
            "sequential": one(0.004),
        }
        for name, found in (("correlated", burst), ("permutation", flat))
    }


@pytest.fixture
def seen(monkeypatch) -> list:
    kept = []
    monkeypatch.setattr(drawing, "save", lambda figure, path, **how: kept.append(figure))
    yield kept
    plt.close("all")


def test_a_row_a_sampler_tells_its_distance_beside_the_floor(bias):
    table, words = order_bias.table(
        json.loads(json.dumps(bias, sort_keys=True))
    )  # keys as they are read: 1, 20, 5
    assert len(table.rows) == 2 * 5 and all(len(row) == len(table.titles) for row in table.rows)
    assert table.rows[1] == (
        "4 correlated bits",
        "Algorithm 3, 5 orders",
        "0.1700",
        "0.0040 (0.0060)",
        "1,234.5",
        "15",
        "below 0.0001",
        "2.50",
    )
    assert table.rows[0][1] == "Algorithm 3, 1 order" and [row[1] for row in table.rows[3:5]] == [
        "exact bursts",
        "one by one",
    ]
    assert table.rows[3][6] == "0.4" and "100,000 draws" in words


def test_the_figure_has_a_line_a_law_over_the_orders_and_the_floor_shaded(bias, seen, tmp_path):
    assert order_bias.figure(json.loads(json.dumps(bias, sort_keys=True)), tmp_path / "x.png")
    axes = seen[0].axes[0]
    lines = {line.get_label(): line for line in axes.lines}
    assert list(lines["4 correlated bits"].get_xdata()) == [1, 5, 20] and list(
        lines["4 correlated bits"].get_ydata()
    ) == [0.07, 0.17, 0.23]
    assert axes.get_xscale() == "log" and [patch.get_height() for patch in axes.patches] == [
        0.006,
        0.006,
    ]
    crosses = [line for line in axes.lines if line.get_marker() == "x" and len(line.get_xdata())]
    assert [line.get_ydata()[0] for line in crosses] == [0.003, 0.003]


def test_the_same_numbers_give_the_same_small_picture_and_none_give_none(bias, tmp_path):
    for name in ("a", "b"):
        order_bias.figure(bias, tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes() and len(
        (tmp_path / "a").read_bytes()
    ) < 70_000
    assert (
        Image.open(tmp_path / "a").size[0] >= 400
        and not order_bias.figure({}, tmp_path / "c")
        and not (tmp_path / "c").exists()
    )
