"""Meteo-Particle against the published rules written out in numpy: one particle list, one loop
over steps."""

import numpy as np
import pytest
import torch
from particles import LAW, WIND, batch, reports, sky

from stages import seeds
from stages.batches import Batch, collate
from stages.errors import InputError
from stages.fields.models.particle import Particle
from stages.layers import particles as layer


def published(rows, law, rng, steps=12):
    """The authors' loop: accept, make, walk, age, let die. Returns places (P, 3), winds (P, 2),
    origins (P, 3) and birth steps (P,)."""
    place, wind, origin, birth = np.zeros((0, 3)), np.zeros((0, 2)), np.zeros((0, 3)), np.zeros(0)
    walk = np.array([law.walk_km, law.walk_km, law.walk_up_km])
    for step in range(steps - 1, -1, -1):
        accepted = []
        for row in (row for row in rows if row[5] // 10 == step):
            near = (np.abs(place - row[:3]) < (100, 100, 0.5)).all(1)
            chance = 1.0
            if near.any() and (wind[near].std(0) > 0).all():
                square = (
                    (np.array(row[3:5]) - wind[near].mean(0)) / (law.accept * wind[near].std(0))
                ) ** 2
                chance = np.exp(-0.5 * square.sum())
            if rng.random() < chance:
                accepted.append(row)
        new = np.repeat(np.array(accepted).reshape(-1, 6), law.particles, 0)
        place = np.concatenate((place, new[:, :3] + walk / 2 * rng.normal(size=(len(new), 3))))
        wind = np.concatenate(
            (wind, new[:, 3:5] + law.wind_spread_m_s * rng.normal(size=(len(new), 2)))
        )
        origin = np.concatenate((origin, new[:, :3]))
        birth = np.concatenate((birth, np.full(len(new), step)))
        place = place + walk * rng.normal(size=place.shape)
        place[:, :2] += 10 * wind / 1000
        age = 10 * (birth - step + 1)
        lives = (rng.random(len(age)) < np.exp(-0.5 * age**2 / law.ageing_s**2)) & (
            np.abs(place[:, :2]) < 320
        ).all(1)
        lives &= (place[:, 2] > 0) & (place[:, 2] < 12)
        place, wind, origin, birth = place[lives], wind[lives], origin[lives], birth[lives]
    return place, wind, origin, birth


def weighted(place, origin, wind, target, everywhere=False):
    """The wind at one target (3,) km, or None where 10 particles or fewer are near."""
    near = (np.abs(place - target) < (20, 20, 0.5)).all(1) | everywhere
    if near.sum() <= 10:
        return None
    square = ((place - target) ** 2).sum(1) + ((place - origin) ** 2).sum(1)
    weight = np.exp(-0.5 * (square - square[near].min()) / 30**2) * near
    return weight @ wind / weight.sum()


@pytest.mark.parametrize(
    "spread", [2e-4, 1.0]
)  # the published one believes hardly any second report of a lone aircraft
def test_it_is_the_published_loop(spread):
    rows, law, runs = sky(), LAW._replace(wind_spread_m_s=spread), 40
    targets = np.array([[-50, 5, 8.1], [30, 10, 8.2], [-15, 15, 11.8], [300, -50, 10.1]])
    rng = seeds.stream(0, "published")
    asked = batch(rows, targets)
    found = {"given": [], "living": [], "wind": []}
    for run in range(runs):
        place, wind, origin, birth = published(rows, law, rng)
        theirs = [weighted(place, origin, wind, target) for target in targets]
        model = Particle(4, 2, 2, particles=law.particles, wind_spread_m_s=spread, seed=run)
        living, made, values = model.particles(asked.context_x[0], asked.context_y[0])
        ours, given = layer.local_mean(
            living, made, values, torch.tensor(targets, dtype=torch.float32), law
        )
        found["given"].append((given, [wind is not None for wind in theirs]))
        found["living"].append(
            (
                np.bincount(made.step[living.report], minlength=12),
                np.bincount(birth.astype(int), minlength=12),
            )
        )
        found["wind"].append(
            (
                np.where(given[:, None], ours, np.nan),
                [(np.nan, np.nan) if wind is None else wind for wind in theirs],
            )
        )
    for what, slack in (("given", 0.02), ("living", 1.0), ("wind", 0.05)):
        ours, theirs = np.array(found[what], dtype=float).swapaxes(0, 1)
        often = (
            (np.minimum(np.isfinite(ours).sum(0), np.isfinite(theirs).sum(0)) > 20)
            .reshape(ours.shape[1], -1)
            .all(1)
        )
        assert often.sum() >= (4 if spread == 1 or what != "wind" else 2)
        ours, theirs = ours[:, often], theirs[:, often]
        error = np.sqrt((np.nanvar(ours, 0) + np.nanvar(theirs, 0)) / runs)
        assert (np.abs(np.nanmean(ours, 0) - np.nanmean(theirs, 0)) < 4 * error + slack).all(), what


def test_a_constant_wind_comes_back_everywhere():
    rows = [(*row[:3], *WIND, row[5]) for row in sky()]
    found = Particle(4, 2, 2)(
        batch(rows, [(-50, 0, 8), (300, -50, 10), (0, 0, 4), (-4000, 900, 30)])
    ).mean[0]
    np.testing.assert_allclose(found, np.tile(WIND, (4, 1)), rtol=1e-5)


def cloud(count, seed=0):
    """Particles (P, 3), their reports and these reports' winds (N, 2): places in numpy and as
    the layer wants them."""
    rng = seeds.stream(seed, "cloud", count)
    rows = np.concatenate(
        (
            rng.uniform((-60, -60, 7, -40, -40), (60, 60, 10, 40, 40), (30, 5)),
            np.full((30, 1), 5.0),
        ),
        1,
    )
    made = reports(rows)
    report = torch.tensor(np.sort(rng.integers(0, 30, count)))
    place = torch.tensor(
        made.place_km.numpy()[report] + rng.normal(size=(count, 3)) * (15, 15, 0.4),
        dtype=torch.float32,
    )
    return layer.Particles(place, report), made


@pytest.mark.parametrize("weight_km", [30.0, 8.0])
def test_winds_are_the_weighted_means_of_the_particles_near(weight_km, monkeypatch):
    monkeypatch.setattr(layer, "LEVELS", 7)  # several groups of targets
    particles, made = cloud(2000)
    targets = (
        seeds.stream(0, "targets").uniform((-90, -90, 6), (90, 90, 11), (100, 3)).astype(np.float32)
    )
    mean, reached = layer.local_mean(
        particles, made, made.wind_m_s, torch.tensor(targets), LAW._replace(weight_km=weight_km)
    )
    place, report = particles.place_km.double().numpy(), particles.report.numpy()
    origin, wind = made.place_km.double().numpy()[report], made.wind_m_s.double().numpy()[report]
    square = ((place - targets[:, None]) ** 2).sum(2) + ((place - origin) ** 2).sum(1)
    near = (np.abs(place - targets[:, None].astype(float)) < (20, 20, 0.5)).all(2)
    np.testing.assert_array_equal(reached, near.sum(1) > 10)
    assert 20 < reached.sum() < 80 and (near.sum(1) == 10).any()
    weight = np.exp(-0.5 * square / weight_km**2) * near
    given = reached.numpy()
    np.testing.assert_allclose(
        mean[given], (weight @ wind)[given] / weight.sum(1, keepdims=True)[given], atol=1e-3
    )
    # elsewhere: all particles, however far; the greatest weight taken out
    wide = layer.wide_mean(
        particles, made, made.wind_m_s, torch.tensor(targets), LAW._replace(weight_km=weight_km)
    )
    weight = np.exp(-0.5 * (square - square.min(1, keepdims=True)) / weight_km**2)
    np.testing.assert_allclose(wide, weight @ wind / weight.sum(1, keepdims=True), atol=1e-2)


def test_a_target_without_particles_gets_the_wide_mean_and_without_any_the_mean_of_the_reports():
    rows = [(0, 0, 8, 10, 0, 5), (200, 0, 8, 30, 4, 5)]
    model, asked = Particle(4, 2, 2), batch(rows, [(0, 0, 8), (0, 0, 5), (199, 0, 1), (100, 0, 8)])
    assert model.reached(asked).tolist() == [[True, False, False, False]]
    mean = model(asked).mean[0].numpy()
    np.testing.assert_allclose(mean[:3], [(10, 0), (10, 0), (30, 4)], atol=1e-3)
    assert 10 < mean[3, 0] < 30
    high = batch(
        [(0, 0, 20, 10, 0, 5), (0, 0, 21, 30, 4, 5)], [(0, 0, 20)]
    )  # above the area nothing lives
    assert not model.reached(high).any() and model(high).mean[0].tolist() == [[20, 2]]
    old = batch([(0, 0, 8, 10, 6, model.window_s + 1), (0, 0, 8, 30, 4, 9000)], [(0, 0, 8)])
    assert model(old).mean[0].tolist() == [[20, 5]]


def test_standardised_winds_at_another_altitude_are_the_same_winds():
    asked = batch(sky(), [(-50, 0, 8), (30, 10, 8.2), (0, 0, 4)])
    model = Particle(4, 2, 2)
    scaled = Particle(4, 2, 2)
    scaled.set_scaler([20.0, -5.0], [8.0, 12.0], altitude_km=9.0)
    mean, std = scaled.y_mean, scaled.y_std
    lower = [x - torch.tensor([0, 0, 3.0, 0]) for x in (asked.context_x, asked.target_x)]
    other = Batch(
        lower[0], (asked.context_y - mean) / std, asked.context_mask, lower[1], asked.target_mask
    )
    torch.testing.assert_close(
        scaled(other).mean * std + mean, model(asked).mean, atol=1e-2, rtol=0
    )
    assert (
        scaled(other).mean * std + mean - Particle(4, 2, 2, seed=1)(asked).mean
    ).abs().max() > 0.03  # other particles are seen


def test_padding_company_and_order_change_nothing_and_the_seed_does():
    model, targets = Particle(4, 2, 2), [(-50, 0, 8), (30, 10, 8.2), (0, 0, 4)]
    sets = [
        batch(sky(seed=1), targets),
        batch([], targets[:1]),
        batch(sky(5), []),
        batch(sky(7), targets[:2]),
    ]
    joint = collate(sets)
    joint = Batch(
        **{
            key: value
            if value.dtype == torch.bool
            else value
            + 1e6 * ~(joint.target_mask if "target" in key else joint.context_mask)[..., None]
            for key, value in vars(joint).items()
            if value is not None
        }
    )
    together = model(joint).mean
    assert together.isfinite().all()
    for row, alone in enumerate(sets):
        torch.testing.assert_close(
            together[row, : alone.target_x.shape[1]], model(alone).mean[0], atol=1e-5, rtol=1e-5
        )
    assert torch.equal(model(sets[1]).mean, torch.zeros(1, 1, 2)) and model(sets[2]).mean.shape == (
        1,
        0,
        2,
    )
    one = sets[0]
    one.context_x[0, 3:8] = one.context_x[
        0, 3
    ]  # five reports from one place and time, and the first's wind twice
    one.context_y[0, 4] = one.context_y[0, 3]
    order = torch.randperm(one.context_x.shape[1], generator=seeds.torch_stream(0, "order"))
    shuffled = Batch(
        one.context_x[:, order],
        one.context_y[:, order],
        one.context_mask,
        one.target_x.flip(1),
        one.target_mask,
    )
    torch.testing.assert_close(model(shuffled).mean.flip(1), model(one).mean, atol=1e-5, rtol=1e-5)
    assert torch.equal(model(one).mean, Particle(4, 2, 2)(one).mean)
    assert not torch.equal(model(one).mean, Particle(4, 2, 2, seed=1)(one).mean)


def test_it_is_built_without_memory_and_filled_from_a_file():
    model = Particle(4, 2, 2)
    model.set_scaler([20.0, -5.0], [8.0, 12.0], 9.0)
    with torch.device("meta"):
        loaded = Particle(4, 2, 2)
    loaded.load_state_dict(model.state_dict(), assign=True)
    asked = batch(sky(), [(-50, 0, 8), (1e8, 0, 8)])
    assert torch.equal(loaded(asked).mean, model(asked).mean) and model(asked).mean.isfinite().all()
    assert model.context == "recent" and model.learns == "nothing" and not list(model.parameters())


@pytest.mark.parametrize(
    "arguments",
    [{"particles": 0}, {"ageing_s": -1.0}, {"walk_km": float("nan")}, {"x_dim": 3}, {"i_dim": 1}],
)
def test_what_makes_no_particles_is_refused(arguments):
    with pytest.raises(InputError, match="particles cannot be made of this"):
        Particle(**{"x_dim": 4, "i_dim": 2, "o_dim": 2, **arguments})
