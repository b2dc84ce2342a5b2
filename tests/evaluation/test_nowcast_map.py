"""The map of a nowcast: a bar that fits it, and arrows that end inside."""

import math

import matplotlib.pyplot as plt
import numpy as np
import pytest
from nowcasts import ask

from stages.winds.nowcast import picture


@pytest.mark.parametrize(
    ("wide_deg", "bar"), [(0.5, 10.0), (1.0, 20.0), (2.0, 50.0), (4.0, 100.0), (9.0, 200.0)]
)
def test_the_bar_is_the_longest_round_one_that_fits(wide_deg, bar):
    lat, lon = np.array([46.0, 47.0]), np.array([7.0, 7.0 + wide_deg])
    assert picture.bar_km(lat, lon) == bar
    assert bar <= 0.4 * wide_deg * 111.195 * math.cos(math.radians(46)) < 2.5 * bar


@pytest.mark.parametrize("arrow", [0.02, 0.15, 0.3])
@pytest.mark.parametrize("wide", [0.0, 0.4, 3.0])
def test_the_margin_holds_arrows_of_any_direction(arrow, wide):
    lat, lon = np.array([46.0, 46.5]), np.array([7.0, 7.0 + wide])
    north, east = picture.limits(lat, lon, arrow)
    long = arrow * np.ptp(east)  # degrees of longitude
    tall = long * math.cos(math.radians(46.25))
    assert east[0] <= lon.min() - long + 1e-9 and east[1] >= lon.max() + long - 1e-9
    assert north[0] <= lat.min() - tall + 1e-9 and north[1] >= lat.max() + tall - 1e-9


def test_a_picture_of_a_short_route_has_a_short_bar(
    airspace, settings, runs, tmp_path, monkeypatch
):
    drawn = []
    monkeypatch.setattr(picture, "save", lambda figure, *_, **__: drawn.append(figure))
    route = "FL250,2026-01-15T07:05:30Z,400,46.3,6.9,46.4,7.0"
    picture.draw(ask(airspace, settings, route=route, model=runs / "kernel"), tmp_path / "a.png")
    texts = [text.get_text() for text in drawn[0].axes[0].texts]
    assert "10 km" in texts and "100 km" not in texts
    plt.close(drawn[0])
