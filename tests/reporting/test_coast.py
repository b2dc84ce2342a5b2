"""The coasts of maps: where they are known to be, on land's edge, without a download."""

import numpy as np
import pytest

from stages.errors import IntegrityError
from stages.figures import coast
from stages.figures.drawing import plt
from stages.winds.joint.maps import about
from stages.winds.joint.reanalysis import Sky

# Harbours on an open coast (latitude, longitude, degrees) and places far from any sea.
BY_THE_SEA = {
    "Den Helder": (52.96, 4.76),
    "Brest": (48.39, -4.49),
    "Genoa": (44.41, 8.93),
    "Valparaiso": (-33.05, -71.62),
    "Lisbon": (38.71, -9.14),
    "Cape Town": (-33.91, 18.42),
}
INLAND = {"Geneva": (46.2, 6.14), "Moscow": (55.75, 37.62), "Denver": (39.74, -104.99)}


def away_km(lat: float, lon: float) -> float:
    """To the nearest point of a line of coast, halves of its edges among them."""
    points = np.concatenate(
        [np.concatenate((one, (one[1:] + one[:-1]) / 2)) for one in coast.lines()]
    )
    return float(np.hypot(*about(points, np.array([lat, lon])).T).min())


@pytest.mark.parametrize("town", BY_THE_SEA)
def test_harbours_lie_on_a_coast(town):
    assert away_km(*BY_THE_SEA[town]) < 40


@pytest.mark.parametrize("town", INLAND)
def test_towns_inland_do_not(town):
    assert away_km(*INLAND[town]) > 100


def test_lines_are_degrees_and_joined():
    """No edge jumps over a border of the world or over a sea."""
    assert len(coast.lines()) > 100
    for line in coast.lines():
        assert len(line) > 1 and (np.abs(line) <= (180, 90)).all()
        assert np.hypot(*np.diff(line, axis=0).T).max() < 12


def test_another_file_is_refused(tmp_path, monkeypatch):
    """Its digest stands in the code, so that the figures that it changes are drawn again."""
    file = tmp_path / "coast.csv"
    file.write_bytes(coast.KEPT.read_bytes() + b"129,0,0\n")
    monkeypatch.setattr(coast, "KEPT", file)
    with pytest.raises(IntegrityError, match="coast.csv"):
        coast.lines.__wrapped__()


def test_drawing_leaves_the_limits_of_the_axes_alone_and_places_what_it_draws():
    figure, axes = plt.subplots()
    axes.set(xlim=(2, 8), ylim=(50, 54))
    coast.draw(axes)
    figure.canvas.draw()
    assert axes.get_xlim() == (2, 8) and axes.get_ylim() == (50, 54)
    plain = axes.collections[0].get_paths()
    coast.draw(axes, lambda line: 2 * line)
    twice = axes.collections[1].get_paths()
    assert len(plain) == len(coast.lines())
    np.testing.assert_array_equal(twice[3].vertices, 2 * plain[3].vertices)
    plt.close(figure)


def test_kilometres_about_a_middle_are_those_of_tasks_of_a_real_sky():
    """They lead back to the same degrees."""
    line, middle = np.array([[5.0, 50.0], [5.5, 51.0], [-6.0, 42.3]]), np.array([50.0, 5.0])
    found = Sky.sphere(None, about(line, middle)[None], middle[None])  # type: ignore[arg-type]
    np.testing.assert_allclose(np.stack(found)[::-1, 0].T, line)
