"""Porous media: the solver against sparse matrices and manufactured solutions, the field's law,
the file, and the real 16 x 16 samples."""

import os
from pathlib import Path

import numpy as np
import pydantic
import pytest
import torch
from scipy import sparse
from scipy.sparse.linalg import spsolve

from stages.errors import DivergedError
from stages.fields import elliptic
from stages.fields.problems.darcy import make as darcy
from stages.params import Darcy

REAL = Path(os.environ.get("TRADEWIND_MIRROR") or "absent") / "pde" / "darcy" / "darcy_train_16.pt"
SMALL = {"seed": 2, "train": 20, "test": 5, "lattice": 8, "refinement": 4}


def matrix(a):
    """-div(a grad u) at the inner nodes of a (n+1, n+1), edge by edge."""
    n = len(a) - 1
    number = {(i, j): (i - 1) * (n - 1) + j - 1 for i in range(1, n) for j in range(1, n)}
    out = sparse.lil_matrix((len(number), len(number)))
    for (i, j), own in number.items():
        for there in ((i + 1, j), (i - 1, j), (i, j + 1), (i, j - 1)):
            conductance = 2 / (1 / a[i, j] + 1 / a[there]) * n**2
            out[own, own] += conductance
            if there in number:
                out[own, number[there]] -= conductance
    return sparse.csc_matrix(out)


@pytest.mark.parametrize("contrast", [1.0, 4.0, 1000.0])
def test_conjugate_gradients_find_the_sparse_solution(contrast):
    rng = np.random.default_rng(0)
    a = np.where(rng.random((3, 15, 15)) < 0.5, 1.0, contrast)
    f = rng.standard_normal((3, 13, 13))
    expected = np.stack(
        [spsolve(matrix(one), g.ravel()).reshape(13, 13) for one, g in zip(a, f, strict=True)]
    )
    assert elliptic.darcy(a, f)[:, 1:-1, 1:-1] == pytest.approx(
        expected, abs=1e-7 * np.abs(expected).max()
    )


def test_a_constant_coefficient_divides_the_poisson_solution():
    f = np.random.default_rng(1).standard_normal((2, 15, 15))
    assert elliptic.darcy(np.full((2, 17, 17), 5.0), f)[:, 1:-1, 1:-1] == pytest.approx(
        elliptic.poisson(f) / 5, rel=1e-9, abs=1e-14
    )


def test_the_error_of_a_smooth_manufactured_solution_falls_with_the_square_of_the_step():
    """u = sin(pi x) sin(2 pi y), a = exp(x) (2 + cos(pi y)); f = -a lap u - grad a . grad u, by
    hand."""
    errors = []
    for n in (16, 32, 64, 128):
        x, y = np.meshgrid(np.arange(n + 1) / n, np.arange(n + 1) / n, indexing="ij")
        pi, a = np.pi, np.exp(x) * (2 + np.cos(np.pi * y))
        u = np.sin(pi * x) * np.sin(2 * pi * y)
        f = (
            5 * pi**2 * a * u
            - a * pi * np.cos(pi * x) * np.sin(2 * pi * y)
            + np.exp(x) * pi * np.sin(pi * y) * 2 * pi * np.sin(pi * x) * np.cos(2 * pi * y)
        )
        errors.append(np.abs(elliptic.darcy(a[None], f[None, 1:-1, 1:-1])[0] - u).max())
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert np.all((orders > 1.9) & (orders < 2.1)) and errors[-1] < 1e-3


def test_the_flux_across_a_jump_between_nodes_is_that_of_resistors_in_a_row():
    a = np.ones((1, 9, 9))
    a[:, 4:] = 18.0
    x, y = elliptic.conductances(a)
    assert (
        x[0, 3] == pytest.approx(np.full(7, 1 / (0.5 / 1 + 0.5 / 18)))
        and np.all(x[0, :3] == 1)
        and np.all(x[0, 4:] == 18)
    )
    assert np.all(y[0, :3] == 1) and np.all(y[0, 3:] == 18)


def test_a_solver_that_is_not_let_finish_says_so():
    a = np.where(np.random.default_rng(0).random((1, 15, 15)) < 0.5, 1.0, 1000.0)
    with pytest.raises(DivergedError, match="3 steps"):
        elliptic.darcy(a, np.ones(()), most=3)


def test_the_field_has_the_covariance_of_its_law():
    """Cov(p, q) = sum over modes of sd^2 phi(p) phi(q), phi cosines of mean square 1; compared
    in units of its own sampling error."""
    draws, cells = 4000, 6
    f = darcy.field(np.random.default_rng(0), draws, cells, 2.0, 3.0).reshape(draws, -1)
    k = np.arange(cells + 1)
    phi = np.cos(np.pi * np.outer(k / cells, k)) * np.where(k == 0, 1, np.sqrt(2))  # place, mode
    sd2 = (np.pi**2 * (k[:, None] ** 2 + k**2) + 9.0) ** -2
    sd2[0, 0] = 0
    two = np.einsum("ak,bl->abkl", phi, phi).reshape((cells + 1) ** 2, -1)
    expected = two * sd2.ravel() @ two.T
    error = np.sqrt((expected**2 + np.outer(np.diag(expected), np.diag(expected))) / draws)
    assert np.abs((f.T @ f / draws - expected) / error).max() < 5
    assert np.abs(f.mean(0) / np.sqrt(np.diag(expected) / draws)).max() < 5


def read(folder, name="darcy_train_8.pt"):
    kept = torch.load(folder / name, weights_only=True)
    return kept["x"].numpy(), kept["y"].numpy()


def test_the_files_are_those_of_pytorch_and_hold_solutions(tmp_path):
    """With one cell a lattice step the file itself satisfies the equations, but for its missing
    last row and column."""
    darcy.make(Darcy(**SMALL | {"refinement": 1}), tmp_path)
    x, y = read(tmp_path)
    assert (x.dtype, x.shape, y.dtype, y.shape) == (bool, (20, 8, 8), np.float32, (20, 8, 8))
    across, up = elliptic.conductances(
        np.pad(np.where(x, 12.0, 3.0), ((0, 0), (0, 1), (0, 1)), constant_values=1.0)
    )
    rest = elliptic.flow(y[:, 1:, 1:].astype(float), across, up)
    assert rest[:, :-1, :-1] == pytest.approx(np.ones((20, 6, 6)), abs=1e-4)
    assert np.all(y[:, 0] == 0) and np.all(y[:, :, 0] == 0) and np.all(y[:, 1:, 1:] > 0)
    assert read(tmp_path, "darcy_test_8.pt")[0].shape == (5, 8, 8)


def test_writing_keeps_every_number(tmp_path):
    rng = np.random.default_rng(0)
    x, y = rng.random((5, 4, 4)) < 0.3, rng.standard_normal((5, 4, 4)).astype("f4")
    darcy.write(tmp_path / "darcy_train_8.pt", x, y)
    assert np.array_equal(read(tmp_path)[0], x) and np.array_equal(read(tmp_path)[1], y)


def test_a_seed_makes_the_same_bytes_again(tmp_path):
    folders = [tmp_path / name for name in "abc"]
    for folder, seed in zip(folders, (2, 2, 3), strict=True):
        folder.mkdir()
        darcy.make(Darcy(**SMALL | {"seed": seed}), folder)
    a, b, c = ((folder / "darcy_train_8.pt").read_bytes() for folder in folders)
    assert a == b != c
    assert not np.array_equal(read(folders[0])[0][:5], read(folders[0], "darcy_test_8.pt")[0])


def likeness(x, y):
    """Numbers that tell one law from another: agreement of phases at lags along both axes, their
    share's spread, and u's mean, sd and coupling."""
    s = np.where(x, 1.0, -1.0)
    agree = [
        float((s[:, lag:] * s[:, :-lag]).mean() + (s[:, :, lag:] * s[:, :, :-lag]).mean()) / 2
        for lag in (1, 2, 4, 8)
    ]
    share, mean = x.mean((1, 2)), y.mean((1, 2))
    return (
        agree,
        [share.mean(), share.std()],
        [y.mean(), y.std()],
        float(np.corrcoef(share, mean)[0, 1]),
    )


@pytest.mark.skipif(
    not REAL.is_file(), reason="TRADEWIND_MIRROR is not set: no real samples to compare with"
)
def test_the_real_samples_have_the_statistics_of_a_smoother_field_and_another_contrast():
    """Not the paper's 3 and 12: within a phase the real u curve 18 times as much as in the
    other, and their field is of s = 3, t = 10."""
    kept = torch.load(REAL, weights_only=True)
    x, y = kept["x"].numpy(), kept["y"].numpy().astype(float)
    bend = -256 * (
        y[:, 2:, 1:-1] + y[:, :-2, 1:-1] + y[:, 1:-1, 2:] + y[:, 1:-1, :-2] - 4 * y[:, 1:-1, 1:-1]
    )
    about = sum(
        x[:, 1 + i : 15 + i, 1 + j : 15 + j].astype(int) for i in (-1, 0, 1) for j in (-1, 0, 1)
    )
    low, high = (1 / np.median(bend[about == inside]) for inside in (0, 9))
    assert high / low == pytest.approx(18.0, abs=0.2)
    ours = Darcy(
        seed=1,
        train=200,
        test=1,
        lattice=16,
        refinement=4,
        smoothness=3.0,
        inverse_length=10.0,
        coefficients=(low, high),
    )
    sim = [np.concatenate(parts) for parts in zip(*darcy.samples(ours, "train", 200), strict=True)]
    (agree, share, spread, coupling), (agree_r, share_r, spread_r, coupling_r) = (
        likeness(*sim),
        likeness(x, y),
    )
    assert agree == pytest.approx(agree_r, abs=0.03) and share == pytest.approx(share_r, abs=0.01)
    assert spread == pytest.approx(spread_r, rel=0.1) and coupling == pytest.approx(
        coupling_r, abs=0.1
    )
    paper = Darcy(**ours.model_dump() | {"smoothness": 2.0, "inverse_length": 3.0})
    fields = (
        darcy.field(np.random.default_rng(0), 400, 16, paper.smoothness, paper.inverse_length)[
            :, :-1, :-1
        ]
        > 0
    )
    assert np.abs(np.subtract(likeness(fields, y[:400])[0], agree_r)).max() > 0.1


@pytest.mark.parametrize(
    "change",
    [
        {"lattice": 12},
        {"refinement": 3},
        {"lattice": 512, "refinement": 4},
        {"coefficients": (0.0, 1.0)},
        {"coefficients": (1e-3, 100.0)},
        {"smoothness": 1.0},
        {"train": 1},
        {"inverse_length": float("nan")},
        {"train": 100_000, "lattice": 128},
    ],
)
def test_plans_that_cannot_be_made_are_refused(change):
    with pytest.raises(pydantic.ValidationError):
        Darcy(**SMALL | change)
