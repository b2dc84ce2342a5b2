"""Infilling in the report: the table's rows, the given cell ringed, points and free samples of
flights, and no reader tripped."""

import numpy as np
import orders_project
import pytest
from orders_project import COLUMNS, FRACTAL, LAWS, MAZE, RANDOM, ROWS, SHOWN, STEPS, number, share
from PIL import Image

from stages.figures import drawing
from stages.figures.drawing import plt
from stages.sequences.reporting import canvas
from stages.sequences.reporting import infill as order_infill

SHARES = {
    name: share(0.5)
    for name in ("correct", "optimal", "joined", "free_correct", "free_optimal", "free_joined")
}
ERRORS = ("rmse", "rmse_mean", "rmse_straight", "free_rmse", "free_rmse_mean")


@pytest.fixture
def seen(monkeypatch) -> list:
    """The figures that are drawn, kept instead of saved."""
    kept = []
    monkeypatch.setattr(drawing, "save", lambda figure, path, **how: kept.append(figure))
    yield kept
    plt.close("all")


def kept(parts: dict[str, np.ndarray], task: str) -> dict[str, np.ndarray]:
    return {
        f"{RANDOM}-s0/infilled/{task}_{name}": array.astype(np.int32)
        for name, array in parts.items()
    }


def mazes() -> dict[str, np.ndarray]:
    """Free samples without a path cell, constrained ones that are the truth; the gap in the wall
    is given."""
    truth = orders_project.mazes(SHOWN)
    free, given = truth.copy(), np.tile(np.arange(2 * MAZE) < MAZE, (SHOWN, 1))
    free[:, MAZE:][free[:, MAZE:] == 4] = 0
    for row in range(SHOWN):
        given[row, MAZE + (1 + row % 3) * COLUMNS + 3] = True
    return {"truth": truth, "given": given, "tokens": truth, "free": free}


def flights() -> dict[str, np.ndarray]:
    truth, rng = orders_project.flights(SHOWN), np.random.default_rng(0)
    given = np.zeros(truth.shape, bool)
    given[:, : 2 + STEPS] = given[:, [1 + STEPS + 5, 1 + STEPS + 11]] = True
    many = np.repeat(truth[:, None], 6, 1)
    free = many.copy()
    free[:, :, 2 + STEPS :] += rng.integers(-9, 10, (SHOWN, 6, STEPS - 1)).astype(np.int32)
    return {"truth": truth, "given": given, "tokens": many, "free": free}


def test_the_table_has_a_row_a_task_and_arm_that_was_infilled_and_no_other():
    rate = {"free_joined_exact": number(0.25, "share"), "free_joined_between": number(30, "mazes")}
    cells = {
        f"mazes/{RANDOM}-s{seed}": {"infilled": {"on": SHARES | rate, "off": SHARES | rate}}
        for seed in (0, 1)
    }
    cells[f"mazes/{FRACTAL}-s0"] = {}
    table, words = order_infill.table(cells, {"kind": "maze"}, "mazes")
    assert [row[:3] for row in table.rows] == [
        ("σ-GPT, random, tiny", "2", text) for text in order_infill.TASKS.values()
    ]
    assert (
        table.rows[0][3] == "50.0 ± 0 [46.0, 54.0]"
        and table.rows[0][-2].startswith("25.0")
        and table.rows[0][-1] == "30 of 100"
        and len(table.rows[0]) == len(table.titles)
    )
    assert (
        "free" in words
        and order_infill.table({f"mazes/{FRACTAL}-s0": {}}, {"kind": "maze"}, "mazes") is None
    )


def test_flights_are_told_in_feet_beside_straight_lines():
    found = {name: number(100.0 * (k + 1), "ft") for k, name in enumerate(ERRORS)}
    table, words = order_infill.table(
        {f"climbs/{RANDOM}-s0": {"infilled": {"points": found}}}, {"kind": "climb"}, "climbs"
    )
    assert table.rows[0][3:] == ("100", "200", "300", "400", "500") and "straight" in words


def test_a_maze_is_shown_free_and_given_a_cell_which_is_ringed(seen, tmp_path):
    assert order_infill.draw(kept(mazes(), "on"), "maze", LAWS["mazes"], tmp_path / "x.png")
    panels = np.array(seen[0].axes).reshape(order_infill.ROWS, 3)
    assert [panel.get_title().split("\n")[0] for panel in panels[0]] == [
        "true path",
        "free sample",
        "given:",
    ]
    assert [panel.get_xlabel() for panel in panels[1]] == ["", "wrong", "shortest"]
    for row, panel in enumerate(panels[:, 2]):
        rings = [line for line in panel.lines if line.get_marker() == "o"]
        assert [list(rings[0].get_data()[k]) for k in (0, 1)] == [[3], [1 + row % 3]]
        np.testing.assert_array_equal(
            panel.images[0].get_array(), mazes()["truth"][row, MAZE:].reshape(ROWS, COLUMNS)
        )


def test_where_some_mazes_have_another_way_those_are_shown_with_both_tasks(seen, tmp_path):
    on, off = mazes(), {name: array[2:] for name, array in mazes().items()}
    assert order_infill.draw(
        kept(on, "on") | kept(off, "off"), "maze", LAWS["mazes"], tmp_path / "x.png"
    )
    panels = np.array(seen[0].axes).reshape(2, 4)
    np.testing.assert_array_equal(
        panels[0, 0].images[0].get_array(), on["truth"][2, MAZE:].reshape(ROWS, COLUMNS)
    )
    for panel in panels[0, 2:]:
        np.testing.assert_array_equal(
            panel.images[0].get_array(), on["tokens"][2, MAZE:].reshape(ROWS, COLUMNS)
        )


def test_flights_show_the_given_points_above_and_the_first_altitude_alone_below(seen, tmp_path):
    assert order_infill.draw(kept(flights(), "points"), "climb", LAWS["climbs"], tmp_path / "x.png")
    panels = np.array(seen[0].axes).reshape(2, order_infill.FLIGHTS)
    dots = [[line for line in panel.lines if line.get_marker() == "o"][0] for panel in panels[:, 0]]
    assert list(dots[0].get_xdata()) == [0, 2.5, 5.5] and list(dots[1].get_xdata()) == [
        0
    ]  # steps of half a minute
    np.testing.assert_allclose(
        dots[0].get_ydata(), flights()["truth"][-1, 1 + STEPS :][[0, 5, 11]] / 10
    )  # 100 ft in 1000 ft
    assert any(line.get_linestyle() == ":" for line in panels[0, 0].lines) and not any(
        line.get_linestyle() == ":" for line in panels[1, 0].lines
    )


def test_nothing_is_drawn_without_samples_or_for_other_kinds(tmp_path):
    assert not order_infill.draw(
        {}, "maze", LAWS["mazes"], tmp_path / "x.png"
    ) and not order_infill.draw({}, "walk", {}, tmp_path / "x.png")
    assert not list(tmp_path.iterdir())


def test_the_pictures_are_small_and_the_same_again_and_their_tensors_no_sampler_s_samples(tmp_path):
    for kind, dataset, task, parts in (
        ("maze", "mazes", "on", mazes()),
        ("climb", "climbs", "points", flights()),
    ):
        for name in ("a", "b"):
            assert order_infill.draw(
                kept(parts, task), kind, LAWS[dataset], tmp_path / f"{kind}{name}.png"
            )
        data, again = ((tmp_path / f"{kind}{name}.png").read_bytes() for name in ("a", "b"))
        assert (
            data == again
            and len(data) < 70_000
            and Image.open(tmp_path / f"{kind}a.png").size[0] >= 400
        )
        assert canvas.sampled(kept(parts, task), "prompt") == {}
