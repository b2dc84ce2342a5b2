"""Charts of the pages: lines lie where their numbers say, values stand beside them as they were."""

import re
from xml.etree import ElementTree

import pytest

from stages.figures.colours import COLOURS
from stages.page import charts
from stages.page.blocks import Chart, Line, Picture, pictures

UP = Line("up <1>", "#1c2430", (0.0, 5.0, 10.0), (1.0, 3.0, 5.0), (0.5, 2.0, 4.0), (2.0, 4.0, 6.0))
FLAT = Line("flat", "#c1121f", (0.0, 10.0), (6.0, 6.0), dashed=True)


def chart(*lines: Line, **more) -> Chart:
    return Chart("what it shows", "step", "loss [kn]", lines, **more)


def tree(one: Chart) -> ElementTree.Element:
    return ElementTree.fromstring(str(charts.drawn(one)))


def points(group: ElementTree.Element) -> list[tuple[float, ...]]:
    told = group.find(".//polyline").get("points").split()
    return [tuple(map(float, point.split(","))) for point in told]


def lines(one: Chart) -> list[ElementTree.Element]:
    return [group for group in tree(one).iter("g") if group.get("class") == "line"]


def test_a_line_lies_between_the_numbers_of_its_axes():
    found = tree(chart(UP, FLAT))
    heights = {text.text: float(text.get("y")) - 4 for text in found.iter("text") if text.get("y")}
    (left, first), (middle, second), (right, third) = points(lines(chart(UP, FLAT))[0])
    assert middle == pytest.approx((left + right) / 2, abs=0.1)
    assert first - second == pytest.approx(second - third, abs=0.2) and first > third
    assert first == pytest.approx(heights["1"], abs=0.2) and third == pytest.approx(heights["5"])
    assert heights["0"] > heights["1"]  # an axis of errors begins at nothing


def test_values_stand_beside_a_line_as_they_were_and_names_are_no_markup():
    up, flat = lines(chart(UP, FLAT))
    assert (up.get("data-x"), up.get("data-y")) == ("0 5 10", "1 3 5")
    assert flat.find(".//polyline").get("stroke-dasharray") and not flat.findall(".//polygon")
    assert len(up.find(".//polygon").get("points").split()) == 6
    assert "up <1> ends at 5" in tree(chart(UP)).get("aria-label")
    assert [name for name, _, _ in charts.legend(chart(UP, FLAT, levels=(("floor", 2.0),)))] == [
        "up <1>",
        "flat",
        "floor",
    ]


def test_on_a_logarithmic_axis_equal_ratios_are_equal_lengths_and_nothing_at_zero_is_drawn():
    found = points(lines(chart(Line("a", "#000000", (1, 2, 3), (1.0, 10.0, 100.0)), log="y"))[0])
    assert found[0][1] - found[1][1] == pytest.approx(found[1][1] - found[2][1], abs=0.2)
    plain = points(lines(chart(Line("a", "#000000", (1, 2, 3), (0.0, 10.0, 100.0)), log="y"))[0])
    assert plain[0][1] - plain[1][1] < plain[1][1] - plain[2][1]


def test_places_that_are_words_are_named_and_a_level_crosses_the_frame():
    one = chart(
        Line("a", "#000000", (0, 2), (1.0, 2.0)),
        names=("FL100", "FL200", "FL300"),
        levels=(("noise", 1.5),),
    )
    named = [text for text in tree(one).iter("text") if text.get("data-n")]
    assert [text.text for text in named] == list(one.names)
    assert float(named[2].get("x")) == points(lines(one)[0])[1][0]
    assert lines(one)[1].get("data-y") == "1.5"


@pytest.mark.parametrize(
    ("low", "high", "told"),
    [(0, 10, ["0", "2", "4", "6", "8", "10"]), (-0.03, 0.04, ["-0.02", "0", "0.02", "0.04"])],
)
def test_axes_are_numbered_by_round_values(low, high, told):
    assert [charts.short(one) for one in charts.steps(low, high)] == told


def test_an_axis_of_many_powers_has_those_alone_and_numbers_are_short():
    assert charts.powers(1, 20) == [1, 2, 5, 10, 20]
    assert charts.powers(1e-3, 1e3) == pytest.approx([1e-3, 1e-2, 0.1, 1, 10, 100, 1e3])
    assert [charts.short(one) for one in (0.31622, 12345, 2e7, 1500)] == [
        "0.3162",
        "12,345",
        "2e+07",
        "1,500",
    ]


@pytest.mark.parametrize("colour", sorted({*COLOURS.values(), *charts.COLOURS, charts.PLAIN}))
def test_every_colour_is_seen_at_night(colour):
    mixed = charts.night(colour)
    assert (charts.light(mixed) + 0.05) / (charts.light(charts.GROUND) + 0.05) >= charts.SEEN
    assert re.fullmatch("#[0-9a-f]{6}", mixed)


def history(*losses: tuple[float, float]) -> dict:
    return {"history": {"val": [list(one) for one in losses]}}


def test_learning_is_the_mean_over_seeds_with_their_range_in_the_order_of_the_arms():
    cells = {
        "d/msa-s0": history((10, 4.0), (20, 2.0)),
        "d/msa-s1": history((10, 6.0), (20, 3.0), (30, 1.0)),
        "d/gen-s0": history((10, 1.0), (20, 0.1)),
        "e/gen-s0": history((10, 9.0), (20, 9.0)),
        "d/mean": {},
    }
    found = charts.learning(cells, "d", ["gen", "mean", "msa"], str.upper)
    assert [line.name for line in found.lines] == ["GEN", "MSA"]
    gen, msa = found.lines
    assert (msa.x, msa.y, msa.low, msa.high) == ((10, 20), (5, 2.5), (4, 2), (6, 3))
    assert gen.low == () and found.log == "y"
    assert charts.learning(cells, "d", ["mean"], str.upper) is None


def test_a_chart_stands_for_its_figure_and_keeps_it(tmp_path):
    (tmp_path / "figures").mkdir()
    for name in ("a", "b"):
        (tmp_path / "figures" / f"{name}.png").touch()
    drawn = pictures(tmp_path, {"a": "of a", "b": "of b"})
    one, alone = chart(UP, FLAT), chart(UP)
    found = charts.over(drawn, {"b": one, "c": alone, "a": None})
    assert found[0] == drawn[0] and found[1].picture == drawn[1] and len(found) == 2
    assert charts.over(drawn, {"c": one})[2].picture is None
    assert isinstance(found[0], Picture)
