"""The flow on the torus obeys its equation: exact solutions, conservation and balances, a
brute-force oracle, the steps' order."""

import json

import numpy as np
import pydantic
import pytest
from scipy.integrate import simpson, solve_ivp

from stages.errors import InputError
from stages.fields.problems.navier_stokes import make as navier_stokes
from stages.params import NavierStokes

BASE = dict(
    seed=3,
    grid=16,
    train=3,
    val=1,
    test=1,
    per_file=2,
    viscosity=1e-3,
    gain=686.0,
    interval=0.2,
    steps_per_output=5,
    outputs=4,
)


def config(**changes) -> NavierStokes:
    return NavierStokes(**BASE | changes)


def mesh(grid: int) -> tuple[np.ndarray, np.ndarray]:
    return np.meshgrid(np.arange(grid) / grid, np.arange(grid) / grid, indexing="ij")


def lively(torus, seed=0, modes=99):
    """A rough flow that fills every kept mode below `modes`, of standard deviation 1, as a
    transform."""
    w = torus.spectrum(np.random.default_rng(seed).standard_normal((torus.grid, torus.grid)))
    w = w * (np.maximum(np.abs(torus.kx), torus.ky) < 2 * np.pi * (modes + 0.5))
    return w / torus.field(w).std()


def derivative(field: np.ndarray, axis: int) -> np.ndarray:
    """The oracle's derivative, by a full complex transform along one axis."""
    number = np.fft.fftfreq(field.shape[axis], 1 / field.shape[axis])
    number[np.abs(number) == field.shape[axis] // 2] = 0
    shape = [-1 if a == axis % field.ndim else 1 for a in range(field.ndim)]
    return np.fft.ifft(
        2j * np.pi * number.reshape(shape) * np.fft.fft(field, axis=axis), axis=axis
    ).real


def convolved(w: np.ndarray, top: int, viscosity: float, force: np.ndarray) -> np.ndarray:
    """dw/dt on the modes -top..top (2 top + 1, 2 top + 1, scaled), every product of two modes
    summed by hand."""
    number = np.arange(-top, top + 1)
    out = np.zeros_like(w)
    for a, p in np.ndenumerate(w):
        kx, ky = 2 * np.pi * number[a[0]], 2 * np.pi * number[a[1]]
        if not kx and not ky:
            continue
        u, v = 1j * ky * p / (kx**2 + ky**2), -1j * kx * p / (kx**2 + ky**2)
        for b, q in np.ndenumerate(w):
            i, j = number[a[0]] + number[b[0]], number[a[1]] + number[b[1]]
            if max(abs(i), abs(j)) <= top:
                out[i + top, j + top] -= (u * number[b[0]] + v * number[b[1]]) * 2j * np.pi * q
    return out - viscosity * (2 * np.pi) ** 2 * np.add.outer(number**2, number**2) * w + force


def centred(torus, spectrum: np.ndarray) -> np.ndarray:
    """The oracle's order of the same modes: full, centred, scaled."""
    full = np.fft.fftshift(np.fft.fft2(torus.field(spectrum))) / torus.grid**2
    middle, top = torus.grid // 2, torus.top
    return full[middle - top : middle + top + 1, middle - top : middle + top + 1]


def test_the_taylor_green_vortex_decays_as_it_must():
    """w = sin 2 pi x sin 2 pi y is carried nowhere by itself and decays by exp(-8 pi^2 nu t):
    here to 1e-12 of 0.45."""
    torus = navier_stokes.Torus(32)
    x, y = mesh(32)
    vortex = np.sin(2 * np.pi * x) * np.sin(2 * np.pi * y)
    end = navier_stokes.advance(torus, torus.spectrum(vortex), 1e-3, np.zeros(1), 0.05, 200)
    assert torus.field(end) == pytest.approx(vortex * np.exp(-8 * np.pi**2 * 1e-3 * 10), abs=1e-12)


def test_a_flow_forced_from_rest_grows_along_the_exact_solution():
    """The forcing depends on x + y alone, so it is not carried: w = f / (8 pi^2 nu) (1 - exp(-8
    pi^2 nu t))."""
    torus, nu = navier_stokes.Torus(16), 1e-2
    x, y = mesh(16)
    rate = 8 * np.pi**2 * nu
    force = 0.1 * (np.sin(2 * np.pi * (x + y)) + np.cos(2 * np.pi * (x + y)))
    assert torus.field(navier_stokes.forcing(torus, 0.1)) == pytest.approx(force, abs=1e-15)
    end = navier_stokes.advance(
        torus, np.zeros((16, 9), complex), nu, navier_stokes.forcing(torus, 0.1), 0.02, 100
    )
    assert torus.field(end) == pytest.approx(force / rate * (1 - np.exp(-rate * 2)), abs=1e-10)


def test_a_run_is_that_of_an_oracle_which_sums_every_pair_of_modes():
    torus, nu = navier_stokes.Torus(12), 5e-3
    start, force = lively(torus), navier_stokes.forcing(torus, 0.1)
    assert torus.top == 3
    shape, pushed = (7, 7), centred(torus, force)

    def slope(t, w):
        return convolved(w.reshape(shape), 3, nu, pushed).ravel()

    true = (
        solve_ivp(
            slope, (0, 0.5), centred(torus, start).ravel(), method="DOP853", rtol=1e-10, atol=1e-12
        )
        .y[:, -1]
        .reshape(shape)
    )
    ours = centred(torus, navier_stokes.advance(torus, start, nu, force, 0.5 / 400, 400))
    assert np.abs(ours - true).max() < 1e-9 * np.abs(true).max()
    assert (
        np.abs(true - centred(torus, start)).max() > 0.1 * np.abs(true).max()
    )  # something happened


def test_the_error_of_the_steps_is_of_order_four():
    torus = navier_stokes.Torus(16)
    start, force = lively(torus, modes=3), navier_stokes.forcing(torus, 0.1)
    ends = [
        torus.field(navier_stokes.advance(torus, start, 1e-3, force, 1 / n, n))
        for n in (40, 80, 160, 1280)
    ]
    errors = [np.abs(end - ends[-1]).max() for end in ends[:3]]
    orders = np.log2(np.array(errors[:2]) / errors[1:])
    assert (np.abs(orders - 4) < 0.3).all() and errors[0] < 1e-2, (errors, orders)


@pytest.mark.parametrize("grid", [16, 20, 48])
def test_advection_conserves_energy_enstrophy_and_vorticity_and_only_without_aliasing(grid):
    def leaks(share: float) -> tuple[float, float]:
        torus = navier_stokes.Torus(grid, share)
        w = lively(torus)
        carried = torus.field(torus.advection(w))
        vorticity = torus.field(w)
        stream = torus.field(torus.inverse * w)
        assert abs(carried.mean()) < 1e-14 and abs(vorticity.mean()) < 1e-14
        scale = np.abs(carried).mean()
        return abs((stream * carried).mean()) / (scale * stream.std()), abs(
            (vorticity * carried).mean()
        ) / (scale * vorticity.std())

    assert max(leaks(2 / 3)) < 1e-13
    assert max(leaks(1.0)) > 1e-4


def test_only_modes_below_a_third_of_the_grid_are_kept():
    assert [navier_stokes.Torus(grid).top for grid in (12, 16, 32, 48, 64, 256)] == [
        3,
        5,
        10,
        15,
        21,
        85,
    ]
    assert all(3 * navier_stokes.Torus(grid).top < grid for grid in range(8, 300, 2))


def test_the_velocity_has_no_divergence_and_the_given_vorticity():
    torus = navier_stokes.Torus(32)
    w = np.stack([lively(torus, seed) for seed in range(3)])
    u, v = torus.velocity(w)
    assert np.abs(derivative(u, -2) + derivative(v, -1)).max() < 1e-12
    assert derivative(v, -2) - derivative(u, -1) == pytest.approx(torus.field(w), abs=1e-12)
    assert abs(u.mean()) < 1e-15 and abs(v.mean()) < 1e-15


def test_energy_and_enstrophy_of_a_run_balance():
    """dE/dt = <psi f> - 2 nu Z and dZ/dt = <w f> - nu <|grad w|^2>, integrated over the run by
    Simpson's rule."""
    torus, nu, step, n = navier_stokes.Torus(32), 1e-3, 0.01, 400
    force = navier_stokes.forcing(torus, 0.1)
    w = navier_stokes.initial(torus, 686.0, np.random.default_rng(0))
    f = torus.field(force)
    rows = []
    for _ in range(n + 1):
        field, stream = torus.field(w), torus.field(torus.inverse * w)
        (u, v), slope = torus.velocity(w), derivative(field, 0) ** 2 + derivative(field, 1) ** 2
        energy, enstrophy = (u * u + v * v).mean() / 2, (field * field).mean() / 2
        rows.append(
            (
                energy,
                enstrophy,
                (stream * f).mean() - 2 * nu * enstrophy,
                (field * f).mean() - nu * slope.mean(),
            )
        )
        w = navier_stokes.advance(torus, w, nu, force, step, 1)
    energy, enstrophy, power, source = np.array(rows).T
    for total, rate in ((energy, power), (enstrophy, source)):
        assert total[-1] - total[0] == pytest.approx(simpson(rate, dx=step), rel=1e-6)
        assert abs(total[-1] - total[0]) > 0.1 * total[0]


def test_the_first_field_is_drawn_from_the_law():
    """The mean power of a mode is that of N(0, gain (-lap + 49)^-2.5), within five standard
    deviations, and 0 where it is cut."""
    torus, rng, n = navier_stokes.Torus(16), np.random.default_rng(1), 4000
    fields = torus.field(np.stack([navier_stokes.initial(torus, 7**1.5, rng) for _ in range(n)]))
    power = (np.abs(np.fft.fft2(fields) / 256) ** 2).mean(0)
    number = np.abs(np.fft.fftfreq(16, 1 / 16))
    law = 7**1.5 * (4 * np.pi**2 * np.add.outer(number**2, number**2) + 49) ** -2.5
    law[0, 0] = 0
    law[np.maximum.outer(number, number) > 5] = 0
    assert (np.abs(power - law) <= 5 * law / np.sqrt(n) + 1e-30).all()
    assert (
        fields.std() == pytest.approx(np.sqrt(law.sum()), rel=0.02) and fields.std() < 0.05
    )  # as the printed law has it: hardly anything


def test_the_files_hold_every_trajectory_after_the_skipped_outputs(tmp_path):
    navier_stokes.make(config(skip=2), tmp_path)
    meta = json.loads((tmp_path / "meta.json").read_text())
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "meta.json",
        "vorticity-0.npy",
        "vorticity-1.npy",
        "vorticity-2.npy",
    ]
    assert (meta["trajectories"], meta["split"]) == ([2, 2, 1], {"train": 3, "val": 1, "test": 1})
    assert {
        key: meta[key] for key in ("grid", "outputs", "interval", "viscosity", "seed", "skip")
    } == {"grid": 16, "outputs": 4, "interval": 0.2, "viscosity": 1e-3, "seed": 3, "skip": 2}
    parts = [np.load(tmp_path / f"vorticity-{k}.npy") for k in range(3)]
    assert [p.shape for p in parts] == [(2, 4, 16, 16), (2, 4, 16, 16), (1, 4, 16, 16)] and all(
        p.dtype == "<f4" for p in parts
    )
    full = navier_stokes.trajectories(config(outputs=6), range(5))
    assert np.concatenate(parts) == pytest.approx(full[:, 2:], abs=1e-6)
    assert np.abs(full.mean((2, 3))).max() < 1e-15  # no vorticity comes or goes
    assert len({field.tobytes() for field in full[:, 0]}) == 5


def test_an_output_is_an_interval_of_time_after_the_one_before():
    torus = navier_stokes.Torus(16)
    found = navier_stokes.trajectories(config(outputs=2), range(1))[0]
    ways = [
        torus.field(
            navier_stokes.advance(
                torus, torus.spectrum(found[0]), 1e-3, navier_stokes.forcing(torus, 0.1), 0.2 / n, n
            )
        )
        for n in (5, 50)
    ]
    assert found[1] == pytest.approx(ways[0], abs=1e-12) and found[1] == pytest.approx(
        ways[1], abs=1e-6
    )


def test_the_same_seed_gives_the_same_bytes_and_another_other_ones(tmp_path):
    bodies = []
    for k, seed in enumerate((3, 3, 4)):
        navier_stokes.make(config(seed=seed), tmp_path / str(k))
        bodies.append({p.name: p.read_bytes() for p in (tmp_path / str(k)).iterdir()})
    assert bodies[0] == bodies[1] and all(bodies[0][name] != bodies[2][name] for name in bodies[0])


@pytest.mark.parametrize(
    "changes",
    [dict(steps_per_output=1, interval=20.0), dict(gain=1e6, skip=50, steps_per_output=2)],
)
def test_too_long_a_step_is_refused_and_leaves_no_file(tmp_path, changes):
    with pytest.raises(InputError) as caught:
        navier_stokes.make(config(**changes), tmp_path)
    assert (
        caught.value.where == "navier_stokes.steps_per_output"
        and "2.8" in caught.value.expected
        and caught.value.remedy
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "changes, told",
    [
        (dict(grid=15), "grid"),
        (dict(grid=6), "grid"),
        (dict(viscosity=0.0), "viscosity"),
        (dict(viscosity=float("nan")), "viscosity"),
        (dict(train=0), "train"),
        (dict(outputs=1), "outputs"),
        (dict(interval=-1.0), "interval"),
        (dict(gain=0.0), "gain"),
        (dict(speed=1), "speed"),
        (dict(grid=512, per_file=1000, outputs=1000), "1953.1 GiB"),
    ],
)
def test_what_the_schema_refuses(changes, told):
    with pytest.raises(pydantic.ValidationError, match=told):
        config(**changes)
