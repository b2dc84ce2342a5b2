"""What a claim tells of its parts: the interval is that of the one that decides."""

from types import SimpleNamespace

import pytest

from stages.claims.parts import Part, conclude, sureness


def part(verdict, interval, bar=1.0):
    return Part("x", verdict, {"interval": interval, "bar": bar, "verdict": verdict}, "why")


SURE, NEAR = part("holds", [5.0, 6.0]), part("holds", [1.1, 3.0])
BELOW = part("holds", [-9.0, -8.0], bar=0.0)  # one that should stay below its bar


@pytest.mark.parametrize(
    ("parts", "decides"),
    [
        ([SURE, NEAR], NEAR),
        ([BELOW, NEAR, SURE], NEAR),  # its lower end is the least, and it is the surest
        ([SURE, part("undecided", [0.5, 4.0]), part("undecided", [0.9, 9.0])], 1),
        ([NEAR, part("fails", [0.8, 0.9]), part("fails", [0.1, 0.2])], 2),
        ([Part("counted", "holds"), NEAR], NEAR),
        ([Part("counted", "holds")], None),
    ],
)
def test_the_interval_is_the_least_sure_parts_or_the_surest_that_failed(parts, decides):
    entry = conclude(SimpleNamespace(dataset="set"), "I-1", "text", "source", parts)
    decides = parts[decides] if isinstance(decides, int) else decides
    assert entry["interval"] == (decides.interval if decides else None)


def test_one_whose_end_touches_its_bar_is_off_by_one_half_and_a_point_is_sure_or_not_at_all():
    assert sureness(part("holds", [1.0, 3.0])) == pytest.approx(1)
    assert sureness(part("undecided", [0.0, 2.0])) == 0
    assert sureness(part("holds", [2.0, 2.0])) == float("inf")
    assert sureness(part("undecided", [1.0, 1.0])) == 0
    assert sureness(Part("kn", "holds", {"interval": [1.0, 3.0]})) == pytest.approx(2)  # bar 0
