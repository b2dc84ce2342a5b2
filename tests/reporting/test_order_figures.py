"""The figures of sequences in any order: what they show of planted samples, their size, and the
same bytes again."""

from pathlib import Path

import matplotlib
import numpy as np
import orders_project
import pytest
from orders_project import COLUMNS, DIFFUSION, GPT, LAWS, MAZE, PROFILE, RANDOM, ROWS, SHOWN
from PIL import Image
from safetensors.numpy import load_file, save_file

from stages.figures.drawing import plt
from stages.sequences.reporting import canvas, flights, mazes
from stages.sequences.reporting import figures as order_figures
from stages.sequences.reporting import gallery as order_gallery
from stages.sequences.reporting import results as order_results
from stages.tables.gather import gather

HOME = Path("reports", orders_project.EXPERIMENT, PROFILE)


@pytest.fixture(scope="module", autouse=True)
def project(tmp_path_factory):
    """The experiment's evaluated files; the working folder of the module's tests."""
    with pytest.MonkeyPatch.context() as patch:
        root = tmp_path_factory.mktemp("order_figures")
        patch.chdir(root)
        orders_project.build(root, ("mazes", "climbs", "permutation"))
        yield root


@pytest.fixture
def content() -> dict:
    return {"cells": gather(HOME), "about": order_results.read_descriptions(HOME)}


@pytest.fixture
def tensors(request) -> dict[str, np.ndarray]:
    return load_file(HOME / "evaluated/mazes/samples.safetensors")


@pytest.fixture
def seen(monkeypatch) -> list:
    """The figures that are drawn, kept instead of saved."""
    kept = []
    for module in (order_figures, mazes, flights):
        monkeypatch.setattr(module, "save", lambda figure, path, **how: kept.append(figure))
    yield kept
    plt.close("all")


def pictures(figure) -> list[np.ndarray]:
    """The first image of every panel, row by row."""
    return [np.asarray(panel.images[0].get_array()) for panel in figure.axes]


def test_all_figures_are_small_wide_enough_and_have_the_same_bytes_again(content):
    order_gallery.draw(HOME, Path("data", PROFILE, "prepared"), content)
    drawn = {file.name: file.read_bytes() for file in (HOME / "figures").iterdir()}
    common = {
        f"{dataset}-{name}.png" for dataset in content["about"] for name in ("passes", "learning")
    }
    assert set(drawn) == common | {
        "mazes-mazes.png",
        "mazes-strip.png",
        "mazes-densities.png",
        "climbs-climbs.png",
        "permutation-densities.png",
    }
    assert all(len(data) < 70_000 for data in drawn.values()) and all(
        Image.open(file).size[0] >= 400 for file in (HOME / "figures").iterdir()
    )
    order_gallery.draw(HOME, Path("data", PROFILE, "prepared"), content)
    assert drawn == {file.name: file.read_bytes() for file in (HOME / "figures").iterdir()}


def test_without_samples_the_numbers_are_drawn_all_the_same(content, tmp_path):
    order_gallery.draw(tmp_path / "none", Path("data", PROFILE, "prepared"), content)
    assert {file.name.partition("-")[2] for file in (tmp_path / "none/figures").iterdir()} == {
        "passes.png",
        "learning.png",
        "densities.png",
    }


def test_mazes_show_truth_exact_density_share_of_samples_and_a_sample_of_each_kind(
    content, tensors, seen, tmp_path
):
    assert mazes.mazes(tensors, content["cells"], "mazes", LAWS["mazes"], tmp_path / "x.png")
    (figure,) = seen
    titles = [panel.get_title() for panel in figure.axes[:8]]
    assert (
        titles[0] == "true path"
        and "exact density" in titles[1]
        and titles[2].startswith("share of 12 samples")
    )  # 6 samplers of 2 seeds
    assert [title.split("\n")[1] for title in titles[3:]] == [
        "left to right",
        "in its own order",
        "bursts, 5 orders",
        "exact bursts",
        "16 steps",
    ]
    np.testing.assert_array_equal(
        pictures(figure)[0], tensors["truth"][0, MAZE:].reshape(ROWS, COLUMNS)
    )
    assert [panel.get_xlabel() for panel in figure.axes[3:8]] == ["shortest"] * 4 + ["wrong"]
    shares = figure.axes[2].images[1].get_array()
    assert (
        shares.filled(0).sum() == pytest.approx((tensors["truth"][0, MAZE:] == 4).sum())
        and shares.filled(0).max() == 1
    )


def test_where_nothing_was_sampled_in_random_order_there_is_no_column_of_shares(
    content, tensors, seen, tmp_path
):
    some = {name: array for name, array in tensors.items() if "random" not in name}
    assert mazes.mazes(some, content["cells"], "mazes", LAWS["mazes"], tmp_path / "x.png")
    titles = [panel.get_title() for panel in seen[0].axes if panel.get_title()]
    assert (
        titles[:2] == ["true path", "exact density\nof shortest paths"]
        and titles[2].startswith("GPT")
        and not any("share of" in one for one in titles)
    )


def test_a_changed_maze_bears_crosses_where_it_was_changed_and_path_bears_none():
    given = orders_project.mazes(1)[0, :MAZE].reshape(ROWS, COLUMNS)
    _, panel = plt.subplots()
    made = orders_project.mazes(1)[0, MAZE:].reshape(ROWS, COLUMNS).copy()
    mazes.draw_maze(panel, made, given)
    assert len(panel.lines[0].get_xdata()) == 0
    made[0, 2], made[2, 1] = 4, 0
    mazes.draw_maze(panel, made, given)
    assert sorted(zip(*panel.lines[1].get_data(), strict=True)) == [(1, 2), (2, 0)]
    plt.close("all")


def test_a_learned_density_has_a_column_where_it_was_kept(content, tensors, seen, tmp_path):
    dense = {f"{RANDOM}-s0/density": np.full((SHOWN, MAZE), 0.25, np.float32)}
    assert mazes.mazes(
        tensors | dense, content["cells"], "mazes", LAWS["mazes"], tmp_path / "x.png"
    )
    assert seen[0].axes[2].get_title() == "learned density"
    assert set(seen[0].axes[2].images[1].get_array().compressed()) == {0.25}


def test_a_strip_goes_by_bursts_where_they_were_kept_and_by_tokens_else(
    content, tensors, seen, tmp_path
):
    about, key = (
        content["about"]["mazes"],
        f"{RANDOM}-s0/burst_1/prompt",
    )  # of the bursts that with most rounds
    mazes.strip(tensors, content["cells"], "mazes", about, LAWS["mazes"], tmp_path / "x.png")
    assert (
        seen[0].axes[0].get_title().startswith("after token")
        and len(seen[0].axes) == 2 * mazes.STAGES
    )
    rounds = np.concatenate(
        [
            np.zeros((SHOWN, MAZE), np.int32),
            np.repeat([[1] * 20 + [2] * 10 + [3] * (MAZE - 30)], SHOWN, 0),
        ],
        1,
    ).astype(np.int32)
    mazes.strip(
        tensors | {f"{key}/round": rounds},
        content["cells"],
        "mazes",
        about,
        LAWS["mazes"],
        tmp_path / "x.png",
    )
    panels = seen[1].axes
    assert [panel.get_title() for panel in panels[:3]] == [
        "after burst 1",
        "after burst 2",
        "after burst 3",
    ] and len(panels) == 6
    waiting = [
        int((~np.ma.getmaskarray(panel.images[1].get_array())).sum()) for panel in panels[:3]
    ]
    assert waiting == [MAZE - 20, MAZE - 30, 0]
    fresh = {(int(y), int(x)) for x, y in zip(*panels[0].lines[-1].get_data(), strict=True)}
    assert fresh == {
        divmod(int(place) - MAZE, COLUMNS) for place in tensors[f"{key}/order"][0, MAZE : MAZE + 20]
    }
    assert panels[2].get_xlabel() == "all accepted"


def test_flights_show_what_is_given_thick_and_leave_out_diffusion_of_few_steps(
    content, seen, tmp_path
):
    found = load_file(HOME / "evaluated/climbs/samples.safetensors")
    truth = found["truth"]
    spoilt = {
        name: np.where(np.arange(truth.shape[1]) >= 2 + orders_project.STEPS, 0, tensor)
        for name, tensor in found.items()
        if "diffusion_1/" in name
    }
    assert flights.climbs(
        found | spoilt, content["cells"], "climbs", LAWS["climbs"], tmp_path / "x.png"
    )
    (figure,) = seen
    assert (
        len(figure.axes) == 3 * 4
        and [panel.get_title() for panel in figure.axes[:4]][0] == "given: first altitude"
    )
    row = flights.flight_of(truth, LAWS["climbs"])
    assert row == SHOWN - 1  # the one with the highest level
    for panel in figure.axes:
        median = panel.lines[-4].get_ydata() * 1000  # then level, truth, and what is given
        true = truth[row, -len(median) :] * 100.0
        assert (
            np.abs(median - true).max() <= 200
        )  # samples are off by two bins at most; zeros of one step would show
    assert [len(panel.lines[-1].get_xdata()) for panel in figure.axes[:4]] == [1, 2, 10, 9]


def test_passes_mark_bursts_diffusion_and_the_bound(content, seen, tmp_path):
    assert order_figures.passes(
        content["cells"], content["about"]["permutation"], "permutation", tmp_path / "x.png"
    )
    axes = seen[0].axes[0]
    lines = {line.get_label(): line for line in axes.lines}
    bursts = lines["σ-GPT, random, tiny: bursts by orders tried"]
    assert list(bursts.get_xdata()) == [4.0, 3.0, 2.5] and bursts.get_ydata() == pytest.approx(
        [99.0] * 3
    )
    assert lines["discrete diffusion, tiny: by steps"].get_ydata() == pytest.approx(
        [25.0, 45.0, 50.0]
    )
    assert set(lines["the fewest passes there can be"].get_xdata()) == {3.2}
    assert {text.get_text() for text in axes.texts} >= {"1", "5", "20", "16"}


def test_densities_are_drawn_beside_companions_only_where_they_were_compared(
    content, seen, tmp_path
):
    cells, about = content["cells"], content["about"]
    assert order_figures.densities(cells, about["mazes"], "mazes", tmp_path / "x.png")
    assert [bars.get_label() for bars in seen[0].axes[0].containers] == [
        "uniform",
        "marginals",
        "σ-GPT, random, tiny",
    ]
    assert seen[0].axes[0].containers[2][0].get_height() == pytest.approx(0.105)
    assert "a path cell" in seen[0].axes[0].get_ylabel()
    assert not order_figures.densities(cells, about["climbs"], "climbs", tmp_path / "x.png")
    assert order_figures.densities(cells, about["permutation"], "permutation", tmp_path / "x.png")
    assert seen[1].axes[0].containers[2][0].get_height() == pytest.approx(0.035)
    assert "path" not in seen[1].axes[0].get_ylabel()


@pytest.mark.parametrize(
    ("arm", "tint"),
    [
        (GPT, "left_to_right"),
        (RANDOM, "random"),
        ("sigma_gpt-curriculum_50-tiny", "curriculum"),
        (DIFFUSION, "diffusion"),
    ],
)
def test_an_order_has_one_colour(arm, tint):
    assert canvas.colour(arm) == canvas.COLOURS[tint] and matplotlib.colors.is_color_like(
        canvas.colour("uniform")
    )


def test_one_seed_and_no_history_leave_no_learning_curve(tmp_path):
    assert not order_figures.learning(
        {"x/uniform": {"history": {"val": []}}}, {}, "x", tmp_path / "x.png"
    )
    assert not mazes.mazes(
        {"truth": orders_project.mazes(2)}, {}, "x", LAWS["mazes"], tmp_path / "x.png"
    )
    save_file({"truth": orders_project.mazes(2)}, tmp_path / "x.safetensors")
    assert canvas.sampled(load_file(tmp_path / "x.safetensors"), "prompt") == {}
