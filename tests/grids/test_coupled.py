"""Tasks on and off the grid: their exact law against one written otherwise, what reading more is
worth, streams that share nothing, a globe without a seam."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from stages.fields.problems.coupled.dual import Dual, Hadamard
from stages.fields.problems.coupled.globe import Earth, Globe
from stages.fields.problems.functions.plans import Kept, Layout, Training
from stages.scores.scores import log_likelihood

DUAL = Dual(0.8, -0.602, 0.602, 0.2, 9, Layout(1, 7, 5, 2.0, 4.0))
PLANE = Dual(0.5, -0.602, 0.602, 0.2, 4, Layout(2, 6, 5, 2.0, 4.0))
GLOBE = Globe(0, 4, 6, 5, 0.5)


def test_the_lines_64_cells_have_63_gaps():
    (cells,) = Dual(0.8, -0.602, 0.602, 0.2, 64, Layout(1, 64, 128, 2.0, 4.0)).axes
    assert (cells[0], cells[-1], len(cells)) == (-4.0, 4.0, 64)
    np.testing.assert_allclose(np.diff(cells), 8 / 63)


def densities(made, law, noise):
    """Of every target the log-density: that of all values together over that of what is known."""
    tasks = made.drawn(6, Kept(1, "test"))
    for row in range(6):
        real = tasks.real[row]
        x, targets = tasks.context_x[row, real], tasks.target_x[row]
        cells, known = made.places, np.r_[tasks.context_y[row, real, 0], tasks.grid_y[row]]
        told = law(row)
        for place, target in enumerate(targets):
            off = np.concatenate((x, target[None]))[None]
            parts = [told.covariance(0, 0, off, off), told.covariance(0, 1, off, cells[None])]
            last = told.covariance(1, 1, cells[None], cells[None])
            whole = np.block([[parts[0][0], parts[1][0]], [parts[1][0].T, last[0]]])
            whole += noise**2 * np.eye(len(whole))
            mean = np.r_[told.mean(0, off)[0], told.mean(1, cells[None])[0]]
            asked = len(x)
            order = np.r_[asked, np.delete(np.arange(len(whole)), asked)]
            whole, mean = whole[np.ix_(order, order)], mean[order]
            value = tasks.target_y[row, place, 0]
            both = multivariate_normal(mean, whole).logpdf(np.r_[value, known])
            rest = multivariate_normal(mean[1:], whole[1:, 1:]).logpdf(known)
            reached = tasks.exact["both"]
            ours = log_likelihood(reached[0][row, place], reached[1][row, place], value)
            assert float(ours) == pytest.approx(both - rest, abs=1e-6)


@pytest.mark.parametrize("made", [DUAL, PLANE], ids=["line", "plane"])
def test_the_exact_law_of_two_functions_is_a_quotient_of_two_densities(made):
    rng = Kept(1, "test").rng()
    lengths = 10 ** rng.uniform(made.low, made.high, 6)  # as `drawn` takes them first
    densities(made, lambda row: Hadamard(made.correlation, lengths[row : row + 1]), made.noise)


def test_the_exact_law_of_the_globe_is_a_quotient_of_two_densities():
    densities(GLOBE, lambda row: Earth(0), 0.5 / 21.2)


def test_to_read_more_is_worth_something_and_nothing_where_nothing_correlates():
    tasks = Dual(0.8, -0.602, 0.602, 0.2, 64, Layout(1, 64, 32, 2.0, 4.0)).drawn(
        128, Kept(0, "test")
    )
    reached = {
        reads: float(log_likelihood(*law, tasks.target_y[..., 0]).mean())
        for reads, law in tasks.exact.items()
    }
    assert reached["both"] > reached["off"] + 0.1 > reached["on"] + 0.1
    none = Dual(0.0, -0.602, 0.602, 0.2, 9, Layout(1, 7, 5, 2.0, 4.0)).drawn(6, Kept(0, "test"))
    for both, off in zip(none.exact["both"], none.exact["off"], strict=True):
        np.testing.assert_allclose(both, off, atol=1e-9)


@pytest.mark.parametrize("made", [DUAL, PLANE, GLOBE], ids=["line", "plane", "globe"])
def test_a_stream_gives_the_same_tasks_again_and_no_kept_one_trains(made):
    one, again = (made.drawn(3, Training(0, 5)) for _ in range(2))
    for name, array in one.arrays().items():
        np.testing.assert_array_equal(array, again.arrays()[name])
    kept = made.drawn(3, Kept(0, "val"))
    assert not np.isin(one.target_x, kept.target_x).any() and not one.exact and kept.exact


def test_the_globe_has_no_seam_and_has_land_and_sea():
    earth = Earth(0)
    west, east = np.array([[40.0, -180.0]]), np.array([[40.0, 180.0]])
    assert earth.height(west) == pytest.approx(earth.height(east), abs=1e-9)
    np.testing.assert_allclose(earth.factors(0, west), earth.factors(0, east), atol=1e-9)
    land = (earth.height(Globe(0, 24, 1, 1, 0.5).places) > 0).mean()
    assert 0.2 < land < 0.8
