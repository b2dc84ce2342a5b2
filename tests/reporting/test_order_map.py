"""The map of generated sequences and its table: what stands in each panel and row, with planted
numbers; the same bytes again."""

import numpy as np
import pytest
from matplotlib.colors import to_hex
from PIL import Image

from stages.figures import drawing
from stages.figures.drawing import plt
from stages.sequences.reporting import map as order_map

DATASET = "letters"
GPT, RANDOM = "sigma_gpt-left_to_right-60k", "sigma_gpt-random-60k"
COLOURS = {GPT: "#112233", RANDOM: "#445566", "marginals": "#778899"}


def compared(neighbour: float, p: float) -> dict:
    """What evaluation says of one sampler."""
    values = {
        "neighbour": (neighbour, "share"),
        "neighbour_p": (p, "p"),
        "mmd": (neighbour / 100, "squared distance"),
        "mmd_p": (p / 2, "p"),
    }
    return {
        "prompt": {
            "metrics": {
                name: {"value": value, "unit": unit, "n": 40}
                for name, (value, unit) in values.items()
            }
        }
    }


CELLS = {
    f"{DATASET}/marginals": {"samplers": {"marginals": compared(0.98, 0.001)}},
    f"{DATASET}/{GPT}-s0": {"samplers": {"left_to_right": compared(0.51, 0.4)}},
    f"{DATASET}/{RANDOM}-s0": {
        "samplers": {"burst_5": compared(0.7, 0.01), "own": compared(0.6, 0.02)}
    },
    f"{DATASET}/{RANDOM}-s1": {
        "samplers": {"burst_5": compared(0.8, 0.03), "own": compared(0.62, 0.04)}
    },
}
ABOUT = {
    "kind": "text",
    "generations": {
        "floor": compared(0.49, 0.6)["prompt"]["metrics"],
        "embedding": {"pieces": 4000, "dimensions": 100, "share": 0.4131},
    },
}
NAMES = (
    "marginals/marginals",
    f"{GPT}-s0/left_to_right",
    f"{RANDOM}-s0/burst_5",
    f"{RANDOM}-s0/own",
)


@pytest.fixture
def tensors() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        f"map/{name}": rng.normal(size=(9, 2)).astype(np.float32) for name in ("val", *NAMES)
    } | {"truth": np.zeros((2, 5), np.int32)}


def drawn(tensors, path) -> bool:
    return order_map.draw(
        tensors, CELLS, DATASET, path, COLOURS.__getitem__, lambda sampler: f"<{sampler}>"
    )


@pytest.fixture
def panels(tensors, monkeypatch, tmp_path):
    """The panels of the map, by their titles."""
    kept = []
    monkeypatch.setattr(drawing, "save", lambda figure, path, **how: kept.append(figure))
    assert drawn(tensors, tmp_path / "map.png")
    yield {panel.get_title(): panel for panel in kept[0].axes}
    plt.close("all")


def test_a_panel_a_method_in_the_order_of_the_tables_with_its_own_share(panels):
    assert list(panels) == [
        "marginals\nno model: 98 % of its own kind",
        "GPT (left to right), 60k\n<left_to_right>: 51 % of its own kind",
        "σ-GPT, random, 60k\n<own>: 60 % of its own kind",
        "σ-GPT, random, 60k\n<burst_5>: 70 % of its own kind",
    ]


def test_a_panel_has_the_others_grey_the_held_out_green_and_its_own_coloured_on_top(
    panels, tensors
):
    others, held, own = panels[
        "GPT (left to right), 60k\n<left_to_right>: 51 % of its own kind"
    ].collections
    assert [to_hex(one.get_facecolor()[0]) for one in (others, held, own)] == [
        order_map.GREY,
        order_map.GREEN,
        COLOURS[GPT],
    ]
    np.testing.assert_allclose(own.get_offsets(), tensors[f"map/{NAMES[1]}"])
    np.testing.assert_allclose(held.get_offsets(), tensors["map/val"])
    assert len(others.get_offsets()) == 27


def test_the_picture_is_small_and_has_the_same_bytes_again(tensors, tmp_path):
    assert drawn(tensors, tmp_path / "one.png") and drawn(tensors, tmp_path / "two.png")
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()
    assert (tmp_path / "one.png").stat().st_size < 70_000 and Image.open(tmp_path / "one.png").size[
        0
    ] >= 400


def test_without_a_map_nothing_is_drawn(tensors, tmp_path):
    assert not drawn({"truth": tensors["truth"]}, tmp_path / "map.png")
    assert not drawn({"map/val": tensors["map/val"]}, tmp_path / "map.png")
    assert not (tmp_path / "map.png").exists()


def test_one_method_alone_has_no_others(tensors, tmp_path):
    assert drawn(
        {name: tensors[name] for name in ("map/val", f"map/{NAMES[0]}")}, tmp_path / "map.png"
    )


def test_the_table_begins_with_the_floor_and_has_every_sampler():
    table, words = order_map.table(CELLS, ABOUT, DATASET)
    assert [row[:3] for row in table.rows] == [
        ("test sequences (floor)", "–", "–"),
        ("marginals", "1", "marginals"),
        ("GPT (left to right), 60k", "1", "left_to_right"),
        ("σ-GPT, random, 60k", "2", "own"),
        ("σ-GPT, random, 60k", "2", "burst_5"),
    ]
    assert table.rows[0][3:] == ("49.0", "0.600", "4.90", "0.300")
    assert table.rows[4][3:] == ("75.0 ± 7.1", "0.0100, 0.0300", "7.50 ± 0.71", "0.00500, 0.0150")
    assert (
        "4,000 pieces" in words
        and "100 directions" in words
        and "41.3 %" in words
        and "40 sequences a side" in words
    )


def test_what_was_not_compared_has_no_table():
    assert order_map.table(CELLS, {"kind": "maze"}, DATASET) is None
    assert (
        order_map.table(
            CELLS, {"kind": "text", "generations": ABOUT["generations"] | {"floor": {}}}, DATASET
        )
        is None
    )
