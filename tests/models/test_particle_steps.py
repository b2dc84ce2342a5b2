"""Particles step by step: which live, which reports are judged by whom, and how far they walk."""

import numpy as np
import pytest
import torch
from particles import LAW, PLACE, WIND, batch, reports, sky

from stages import seeds
from stages.fields.models.particle import Particle
from stages.layers import particles as layer


@pytest.mark.parametrize("steps", [1, 5, 10, 15])
def test_particles_survive_by_the_product_and_walk_with_the_wind(steps):
    law = LAW._replace(particles=20000)
    made = reports([(*PLACE, *WIND, 10 * steps - 5)])
    living = layer.released(made, law, torch.Generator().manual_seed(steps))
    survival = np.prod([np.exp(-0.5 * (10 * k) ** 2 / 180**2) for k in range(1, steps + 1)])
    assert law.survival(steps) == pytest.approx(survival, rel=1e-12)
    deviation = np.sqrt(20000 * survival * (1 - survival))
    assert abs(len(living.report) - 20000 * survival) < 4.5 * deviation + 1
    moved = (living.place_km.numpy() - PLACE) / (5, 5, 0.1)
    drift = np.array([*(steps * 10 * WIND / 1000), 0]) / (5, 5, 0.1)
    variance = 0.25 + steps  # half a walk at birth, one in every step
    assert (np.abs(moved.mean(0) - drift) < 4.5 * np.sqrt(variance / len(moved))).all()
    assert (np.abs(moved.var(0) / variance - 1) < 4.5 * np.sqrt(2 / len(moved))).all()
    still = layer.released(
        made, law._replace(walk_km=1e-6, walk_up_km=1e-6), torch.Generator().manual_seed(steps)
    )
    np.testing.assert_allclose(
        still.place_km - PLACE, np.tile(drift * (5, 5, 0.1), (len(still.report), 1)), atol=1e-4
    )


def test_the_area_ends_at_its_edges():
    rows = [
        (319, 0, 9, 50, 0, 25),
        (0, -319, 9, 0, -50, 25),
        (0, 0, 11.95, 0, 0, 25),
        (0, 0, 0.05, 0, 0, 25),
        (0, 0, 6, 0, 0, 25),
    ]
    living = layer.released(
        reports(rows), LAW._replace(particles=2000), torch.Generator().manual_seed(0)
    )
    assert (
        (living.place_km[:, :2].abs() < 320).all()
        and (living.place_km[:, 2] > 0).all()
        and (living.place_km[:, 2] < 12).all()
    )
    numbers = torch.bincount(living.report)
    assert (numbers[:4] < 0.7 * numbers[4]).all() and (numbers > 200).all()


def test_expected_numbers_of_particles_are_what_walking_gives():
    law = LAW._replace(particles=30000)
    places = torch.tensor([[120.0, -40, 9.4], [-60, 60, 8.7], [20, -40, 9.9], [90, 40, 9]])
    for steps in (1, 6, 12):
        made = reports([(*PLACE, *WIND, 10 * steps - 5)])
        living = layer.released(made, law, torch.Generator().manual_seed(steps))
        wanted = (
            ((living.place_km - places[:, None]).abs() < torch.tensor([100, 100, 0.5]))
            .all(2)
            .sum(1)
        )
        found = layer.expected(places, made, torch.tensor([steps]), law)[:, 0]
        np.testing.assert_allclose(found, wanted, atol=4.5 * 30000**0.5 / 2)


def test_acceptance_is_the_formula_over_particles():
    rng, law = seeds.stream(0, "acceptance"), LAW._replace(wind_spread_m_s=0.5)
    number = rng.integers(0, 4000, (5, 6))
    winds = 3 * rng.normal(size=(6, 2))
    reported = 12 * rng.normal(size=(5, 2))
    number[3], number[4], reported[4] = (
        0,
        (0, 0, 0, 0, 0, 4000),
        winds[5] + 0.8,
    )  # nothing around; one cloud alone
    found = layer.acceptance(
        *(torch.tensor(a, dtype=torch.float32) for a in (number, winds, reported)), law
    )
    for row in range(5):
        around = np.repeat(winds, number[row], 0)
        around = around + 0.5 * rng.normal(size=around.shape)
        wanted = (
            np.exp(-0.5 * (((reported[row] - around.mean(0)) / (3 * around.std(0))) ** 2).sum())
            if len(around)
            else 1.0
        )
        assert float(found[row]) == pytest.approx(wanted, abs=0.02)
    assert len(set(np.round(found.tolist(), 2))) > 3
    # one particle, or less than one expected: undefined, so believed
    few = torch.tensor([[1.0, 0.0], [0.3, 0.6], [0.6, 0.6]])
    assert (layer.acceptance(few, torch.eye(2), torch.full((3, 2), 99.0), law) > 0.5).tolist() == [
        True,
        True,
        False,
    ]


def test_a_report_is_judged_by_what_lives_when_it_comes():
    law = LAW._replace(wind_spread_m_s=2.0, walk_up_km=0.01)
    old, young, new = (0, 0, 9, 0, 0, 155), (0, 0, 9, 4, 4, 15), (0, 0, 9, -4, -4, 5)
    number = 40 * np.array(
        [law.survival(15), law.survival(1)]
    )  # all of both clouds are near; their ages are 15 steps and one
    share = number / number.sum()
    square = (
        2 * (4 + 4 * share[1]) ** 2 / (9 * (16 * share[0] * share[1] + 4 * (1 - 1 / number.sum())))
    )
    both = []
    for seed in range(80):
        chance = torch.rand(
            3, generator=torch.Generator().manual_seed(seed)
        )  # the generator's first numbers, the oldest report's first
        kept = layer.accepted(reports([old, young, new]), law, torch.Generator().manual_seed(seed))
        if kept[1]:
            assert bool(kept[2]) == (float(chance[2]) < np.exp(-0.5 * square))
            both.append(bool(kept[2]))
        assert kept[0]
    assert 10 < sum(both) < len(both) - 5


@pytest.mark.parametrize("error", [0.0, 10.0, 25.0])
def test_outliers_are_rejected_at_the_rate_of_the_formula(error):
    winds = np.array([(30, -10), (33, -6), (27, -9), (31, -14)], dtype=float)
    rows = [(10 * i, 0, 9, *wind, 15) for i, wind in enumerate(winds)] + [
        (20, 20, 9, *winds.mean(0) + (error, 0), 5)
    ]
    believed = [
        bool(layer.accepted(reports(rows), LAW, torch.Generator().manual_seed(seed))[-1])
        for seed in range(200)
    ]
    rate = np.exp(
        -0.5 * (error / (3 * winds[:, 0].std())) ** 2
    )  # all four clouds are around the new one, equally many
    assert abs(np.mean(believed) - rate) < 4 * np.sqrt(rate * (1 - rate) / 200) + 0.01


def test_an_aircraft_makes_particles_once_a_step():
    here = [
        (-40 + 0.24 * t, 0, 9 + 0.01 * t, 30, 0, 9.5 - t) for t in (0, 4, 8)
    ]  # 240 m/s, climbing
    near = [(-40 + 0.24 * t, 3, 9, 30, 0, 9.5 - t) for t in (0, 4, 8)]  # 3 km beside it
    above = [(-40, 0, 9.4, 30, 0, 9.5)]  # a level above the first
    before = [(-40, 0, 9, 30, 0, 10.5)]  # another step
    rows = sorted(here + near + above + before, key=lambda row: -row[5])
    kept = [row for row, keep in zip(rows, layer.latest(reports(rows)), strict=True) if keep]
    assert sorted(kept) == sorted([here[2], near[2], *above, *before])
    twins = [(0, 0, 9, 30, 0, 5), (0, 0, 9, 31, 0, 5)]  # at one time: two aircraft
    assert layer.latest(reports(twins)).all()
    model = Particle(4, 2, 2)
    read = batch(here, [])
    living, made, _ = model.particles(read.context_x[0], read.context_y[0])
    assert len(made.step) == 1 and abs(len(living.report) - 300) < 10


def test_the_window_holds_every_report_that_can_have_a_living_particle():
    model = Particle(4, 2, 2)
    ages = np.arange(1, model.steps + 1) * 10
    assert model.window_s == 340 and 300 * np.exp(-0.5 * (ages / 180) ** 2).prod() < 1e-6
    assert 300 * np.exp(-0.5 * (ages[:-1] / 180) ** 2).prod() > 1e-6
    assert (
        Particle(4, 2, 2, ageing_s=90.0).window_s < 340 < Particle(4, 2, 2, ageing_s=400.0).window_s
    )
    older = [(0, 0, 9, 99, 99, model.window_s + seconds) for seconds in (0.1, 5, 5000)]
    asked = [(0, 0, 8), (-50, 0, 8)]
    assert torch.equal(model(batch(older + sky(), asked)).mean, model(batch(sky(), asked)).mean)
