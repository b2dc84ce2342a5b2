"""Figure 4.5 and its table: families of data sets, what stands in a row, what is drawn, and that
nothing comes of a single size."""

import numpy as np
import pytest

from stages.figures import drawing
from stages.sequences import memory_claims
from stages.sequences.reporting import sizes

GPT, RANDOM = "sigma_gpt-left_to_right-tiny", "sigma_gpt-random-tiny"
PICKED = {
    10: ((0.99, 0.02), (0.97, 0.01)),
    200: ((0.98, 0.9), (0.96, 0.03)),
    4000: ((0.99, 0.97), (0.9, 0.88)),
}  # GPT, random: training, test


def share(value: float) -> dict:
    return {
        "value": value,
        "unit": "share",
        "n": 200,
        "low": max(value - 0.05, 0.0),
        "high": min(value + 0.05, 1.0),
    }


def cell(sampler: str, train: float | None, test: float) -> dict:
    entry = {
        "metrics": {"nats_val": {"value": 0.5, "unit": "nats/token", "n": 9}},
        "parameters": 7,
        "samplers": {sampler: {"prompt": {"metrics": {"correct": share(test)}}}},
    }
    return (
        entry
        if train is None
        else entry
        | {
            "memorised": {
                "correct": share(train),
                "repeated": share(train / 2),
                "nats": {"value": 0.25, "unit": "nats/token", "n": 9},
            }
        }
    )


def project(picked=PICKED, digest="a") -> tuple[dict, dict]:
    """cells and about of mazes that differ in size alone, beside mazes that no one asked and
    flights."""
    cells, about = {}, {}
    for size, (gpt, random) in picked.items():
        name = f"set_{size}"
        about[name] = {
            "kind": "maze",
            "prompt": 35,
            "sequences": {"train": size, "val": 5, "test": 9},
            "held_out": digest,
        }
        cells |= {
            f"{name}/uniform": cell("uniform", None, 0.0),
            f"{name}/marginals": cell("marginals", None, 0.01),
        }
        cells |= {
            f"{name}/{GPT}-s0": cell("left_to_right", *gpt),
            f"{name}/{RANDOM}-s0": cell("own", *random),
        }
    about["flights"] = {
        "kind": "climb",
        "prompt": 4,
        "sequences": {"train": 50, "val": 5, "test": 9},
    }
    cells["flights/uniform"] = cell("uniform", None, 0.0)
    return cells, about


def test_a_family_is_ranked_by_size_and_a_single_size_or_other_held_out_sequences_are_none():
    cells, about = project(dict(reversed(PICKED.items())))
    assert sizes.families(cells, about) == [["set_10", "set_200", "set_4000"]]
    about["set_200"]["held_out"] = "b"
    assert sizes.families(cells, about) == [["set_10", "set_4000"]]
    about["set_10"]["held_out"] = "c"
    assert sizes.families(cells, about) == [] and sizes.table(cells, about) is None


def test_a_row_an_arm_and_size_tells_both_accuracies_their_difference_and_the_state():
    table, words = sizes.table(*project())
    rows = {(row[0], row[2]): row for row in table.rows}
    assert [row[2] for row in table.rows] == ["10", "200", "4,000"] * 2 + ["4,000"] * 2
    gpt, random = rows["GPT (left to right), tiny", "200"], rows["σ-GPT, random, tiny", "200"]
    assert (
        gpt[4] == "98.0 [93.0, 100]"
        and gpt[5] == "90.0 [85.0, 95.0]"
        and gpt[6] == "8.0"
        and gpt[-1] == "generalises"
    )
    assert (
        random[4] == "96.0 [91.0, 100]"
        and random[6] == "93.0"
        and random[7] == "48.0"
        and random[-1] == "memorises"
    )
    assert (
        random[8:10] == ("0.250", "0.500") and rows["uniform", "4,000"][4] == "–" and "50" in words
    )


def test_what_was_not_learned_is_neither_memorised_nor_generalised():
    assert [memory_claims.state(*pair) for pair in ((0.5, 0.0), (0.9, 0.3), (0.9, 0.45))] == [
        "neither",
        "memorises",
        "generalises",
    ]


def test_the_figure_draws_training_and_test_of_each_order_and_the_companion(tmp_path, monkeypatch):
    kept = []
    monkeypatch.setattr(
        drawing, "save", lambda figure, path, **_: kept.append((figure.axes[0], path))
    )
    cells, about = project()
    sizes.draw(cells, about, lambda arm: "#c1121f" if "random" in arm else "#1d6fa5", tmp_path)
    ((axes, path),) = kept
    assert path == tmp_path / "set_4000-sizes.png" and axes.get_xscale() == "log"
    lines = {line.get_label(): line for line in axes.get_lines()}
    (tested,) = (line for name, line in lines.items() if "random" in name and "test" in name)
    x, y = tested.get_data()
    assert tested.get_linestyle() == "-"
    np.testing.assert_allclose(x, [10, 200, 4000])
    np.testing.assert_allclose(y, [1, 3, 88])
    (training,) = (
        line for name, line in lines.items() if "left to right" in name and "training" in name
    )
    assert training.get_linestyle() == "--" and training.get_color() == "#1d6fa5"
    assert any("uniform" in name for name in lines)
    np.testing.assert_allclose(
        sorted(label.get_position()[0] for label in axes.get_xticklabels()), [10, 200, 4000]
    )


def test_a_figure_is_written_and_the_same_numbers_give_the_same_bytes(tmp_path):
    found = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        sizes.draw(*project(), lambda arm: "#1d6fa5", tmp_path / name)
        found.append((tmp_path / name / "set_4000-sizes.png").read_bytes())
    assert found[0] == found[1] and found[0].startswith(b"\x89PNG") and len(found[0]) > 5000


def test_without_trained_arms_nothing_is_drawn(tmp_path):
    cells, about = project()
    cells = {name: one for name, one in cells.items() if "sigma" not in name}
    sizes.draw(cells, about, lambda arm: "black", tmp_path)
    assert sizes.table(cells, about) is None and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("seeds", [2, 3])
def test_the_mean_over_seeds_stands_in_the_row(seeds):
    cells, about = project()
    for k in range(1, seeds):
        cells |= {
            f"{name[:-1]}{k}": cell("own", 0.96, 0.03 + 0.1 * k)
            for name in list(cells)
            if name == f"set_200/{RANDOM}-s0"
        }
    table, _ = sizes.table(cells, about)
    row = next(row for row in table.rows if row[0].startswith("σ-GPT, random") and row[2] == "200")
    assert (
        row[3] == str(seeds)
        and row[6] == f"{100 * (0.96 - np.mean([0.03 + 0.1 * k for k in range(seeds)])):.1f}"
    )
