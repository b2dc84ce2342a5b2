"""Figures are there, are pictures, and are the same bytes from the same numbers; what they draw
is what the cells say."""

import io
import struct
from pathlib import Path

import pytest
import results_project
from PIL import Image
from results_project import CELLS, HOME, LEADS, PROFILE, cell, number

from stages.figures.colours import colour
from stages.tables.gather import gather, over_seeds
from stages.winds import figures

SIGNATURE = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """All figures of one data set, drawn twice: the bytes of each time by file name."""
    with pytest.MonkeyPatch.context() as patch:
        root = tmp_path_factory.mktemp("figures")
        patch.chdir(root)
        results_project.build(root, {"simulated": CELLS["simulated"]})
        cells = gather(HOME)
        times = []
        for _ in range(2):
            figures.draw(HOME, Path("data") / PROFILE / "prepared", over_seeds(cells), cells)
            times.append({file.name: file.read_bytes() for file in (HOME / "figures").iterdir()})
        yield times


def cells_of(**values: tuple) -> dict:
    return {f"simulated/{name}".replace("_s", "-s"): cell(*value) for name, value in values.items()}


def test_every_figure_with_two_bins_or_more_is_there(drawn):
    assert set(drawn[0]) == {
        f"simulated-{name}.png" for name in ("by_lead", "by_altitude", "nowcast", "errors")
    }  # one distance bin: nothing to compare


def test_figures_are_png_of_a_size_to_read_and_not_blank(drawn):
    for name, content in drawn[0].items():
        assert content.startswith(SIGNATURE), name
        assert content.rstrip(b"\x00").endswith(b"IEND\xaeB`\x82"), name
        width, height = struct.unpack(">II", content[16:24])
        assert 500 <= width <= 3000 and 300 <= height <= 2000, name
        assert len(content) > 10_000, name


def test_maps_have_smooth_shades_and_stay_small_and_the_others_a_palette(drawn):
    """256 colours would show as bands in a colour bar."""
    for name, content in drawn[0].items():
        picture = Image.open(io.BytesIO(content))
        assert picture.mode == ("RGB" if name.endswith(("nowcast.png", "errors.png")) else "P"), (
            name
        )
        assert len(content) < 150_000, name
    nowcast = Image.open(io.BytesIO(drawn[0]["simulated-nowcast.png"]))
    assert len(nowcast.getcolors(1 << 24)) > 1000


def test_figures_hold_no_clock_and_no_name_of_software(drawn):
    for name, content in drawn[0].items():
        kinds, at = [], 8
        while at < len(content):
            size, kind = struct.unpack(">I4s", content[at : at + 8])
            kinds.append(kind)
            at += 12 + size
        assert b"IDAT" in kinds and not {b"tEXt", b"zTXt", b"iTXt", b"tIME", b"eXIf"} & set(
            kinds
        ), name


def test_a_second_drawing_gives_the_same_bytes(drawn):
    assert drawn[0] == drawn[1]


def test_figures_differ_from_each_other(drawn):
    assert len(set(drawn[0].values())) == len(drawn[0])


# --- what is drawn


def test_a_curve_is_the_mean_over_the_arms_seeds_bin_by_bin():
    cells = {f"simulated/{name}": cell(*value) for name, value in CELLS["simulated"].items()}
    curve = figures.curve(cells, "simulated/msa-shared-20k", "by_lead")
    assert curve == {
        lead: pytest.approx((7.6 + i, 6.7 + i, 8.5 + i), abs=1e-12) for i, lead in enumerate(LEADS)
    }
    assert figures.curve(cells, "simulated/knn", "by_altitude")["FL300-350"] == (9.0, 8.0, 10.0)


def test_a_curve_has_the_bins_of_every_seed_and_a_value_without_interval_is_its_own_bounds():
    cells = cells_of(a_s0=(2.0, 1.0, 3.0), a_s1=(4.0, 3.0, 5.0))
    del cells["simulated/a-s1"]["by_lead"]["030"]
    cells["simulated/a-s0"]["by_lead"]["005"]["rmse_component_kn"] = number(2.0)
    assert figures.curve(cells, "simulated/a", "by_lead") == {
        "005": (3.0, 2.5, 3.5),
        "120": (5.0, 4.0, 6.0),
    }


@pytest.mark.parametrize(
    "arm, group",
    [("simulated/absent", "by_lead"), ("simulated/a", "by_nothing"), ("other/a", "by_lead")],
)
def test_a_curve_of_what_was_not_measured_is_empty(arm, group):
    assert figures.curve(cells_of(a_s0=(2.0, 1.0, 3.0)), arm, group) == {}


@pytest.mark.parametrize("bins, expected", [(0, False), (1, False), (2, True)])
def test_a_breakdown_is_drawn_from_two_bins_on(tmp_path, bins, expected):
    cells = cells_of(a_s0=(2.0, 1.0, 3.0))
    cells["simulated/a-s0"]["by_lead"] = dict(
        list(cells["simulated/a-s0"]["by_lead"].items())[:bins]
    )
    path = tmp_path / "by_lead.png"
    assert (
        figures.breakdown(cells, ["simulated/a"], "by_lead", "lead time [min]", 1.5, path)
        is expected
    )
    assert path.exists() is expected


def test_an_arm_without_the_breakdown_does_not_hide_the_others(tmp_path):
    cells = cells_of(a_s0=(2.0, 1.0, 3.0), b_s0=(3.0, 2.0, 4.0))
    cells["simulated/b-s0"]["by_lead"] = {}
    assert figures.breakdown(
        cells,
        ["simulated/a", "simulated/b"],
        "by_lead",
        "lead time [min]",
        None,
        tmp_path / "x.png",
    )


@pytest.fixture
def axes(monkeypatch):
    """The axes of what `breakdown` would have saved."""
    kept = []
    monkeypatch.setattr(figures, "save", lambda figure, path: kept.append(figure.axes[0]))
    yield kept
    for one in kept:
        figures.plt.close(one.figure)


def test_a_breakdown_draws_every_arm_at_its_numbers_above_zero_with_the_noise_floor(axes, tmp_path):
    cells = {f"simulated/{name}": cell(*value) for name, value in CELLS["simulated"].items()}
    figures.breakdown(
        cells,
        ["simulated/knn", "simulated/msa-shared-20k"],
        "by_lead",
        "lead time [min]",
        2.5,
        tmp_path / "x.png",
    )
    lines = {
        line.get_label(): (list(line.get_xdata()), list(line.get_ydata()))
        for line in axes[0].get_lines()
    }
    assert lines["knn"] == ([5, 30, 120], pytest.approx([10.0, 11.0, 12.0]))
    assert lines["msa-shared-20k"] == ([5, 30, 120], pytest.approx([7.6, 8.6, 9.6]))
    assert lines["noise floor of the sensors"][1] == [2.5, 2.5]
    assert (
        axes[0].get_ylim()[0] == 0
        and "kn" in axes[0].get_ylabel()
        and axes[0].get_xlabel() == "lead time [min]"
    )
    shaded = axes[0].collections[0].get_paths()[0].get_extents()
    assert (shaded.y0, shaded.y1) == pytest.approx((9.0, 13.0))


def test_named_bands_are_evenly_placed_in_order(axes, tmp_path):
    figures.breakdown(
        cells_of(a_s0=(2.0, 1.0, 3.0)),
        ["simulated/a"],
        "by_altitude",
        "altitude band",
        None,
        tmp_path / "x.png",
    )
    assert [tick.get_text() for tick in axes[0].get_xticklabels()] == list(results_project.BANDS)
    assert list(axes[0].get_xticks()) == [0, 1]


def test_models_have_one_colour_each_whatever_their_size():
    assert colour("msa-shared-5k") == colour("msa-shared-100k") != colour("msa-gaussian-5k")
    assert (
        len(
            {
                colour(name)
                for name in (
                    "day_average",
                    "hour_average",
                    "knn",
                    "kernel",
                    "msa-shared-5k",
                    "msa-traditional-5k",
                    "msa-gaussian-5k",
                )
            }
        )
        == 7
    )
    assert colour("knn2") == colour("unheard of")
