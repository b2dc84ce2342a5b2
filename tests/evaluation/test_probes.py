"""The probes on models whose answers are known: which latents a planted error touches, when it
is undone, hulls, regions, tight contexts."""

import numpy as np
import pytest
import torch
from torch import nn

from stages.batches import Batch, Prediction, collate, single
from stages.errors import DataError, DivergedError
from stages.fields import failures, probes
from stages.fields.models import build


def batch(sets=5, points=6, seed=0):
    """Random contexts, and as targets the same points in another order."""
    draw = torch.Generator().manual_seed(seed)
    parts = []
    for _ in range(sets):
        x = torch.randn(points, 2, generator=draw)
        y = torch.randn(points, 1, generator=draw)
        order = torch.randperm(points, generator=draw)
        parts.append(single(x, y, x[order], y[order]))
    return collate(parts)


class Toy(nn.Module):
    """One latent a context point, of width 2: mixed (B C C) by `kind` before the target of the
    same number reads its own."""

    def __init__(self, kind: str):
        super().__init__()
        self.kind, self.steps = kind, nn.ModuleList([nn.Linear(1, 2), nn.Linear(2, 2)])

    def forward(self, given: Batch) -> Prediction:
        latents = given.context_y
        for step in self.steps:
            latents = step(latents)
        if self.kind == "mean":
            latents = latents.mean(1, keepdim=True).expand_as(latents)
        if self.kind == "pairs":
            latents = latents + latents.roll(1, 1)
        return Prediction(latents.sum(2, keepdim=True))


@pytest.mark.parametrize(
    ("kind", "touched", "share"), [("own", 1, 1), ("pairs", 2, 0.5), ("mean", 6, 1 / 6)]
)
def test_a_planted_error_touches_the_latents_that_its_answer_reads(kind, touched, share):
    norms = probes.latent_gradients(Toy(kind), batch(), "steps")
    found = probes.spread(norms)
    assert norms.shape == (5, 6) and norms[:, 1].min() > 0
    assert found["effective"] == pytest.approx(np.full(5, touched)) and found[
        "largest"
    ] == pytest.approx(np.full(5, share))
    assert (found["touched"] == touched).all()


def test_the_gradient_is_that_of_the_planted_square():
    """The answer is the sum of a latent's two numbers, so each has the gradient -2 x error, and
    their norm is 2 sqrt(2) x error."""
    norms = probes.latent_gradients(Toy("own"), batch(), "steps", target=2, error=10.0)
    expected = torch.zeros(5, 6)
    expected[:, 2] = 20 * 2**0.5
    torch.testing.assert_close(norms, expected)


def test_an_effective_number_lies_between_one_and_all():
    norms = torch.rand(50, 9, generator=torch.Generator().manual_seed(0)) + 1e-3
    found = probes.spread(norms)
    assert (
        (found["effective"] > 1).all()
        and (found["effective"] < 9).all()
        and (found["largest"] > 1 / 9).all()
    )
    assert probes.spread(7 * norms)["effective"] == pytest.approx(found["effective"])


@pytest.mark.parametrize("norms", [torch.zeros(2, 3), torch.tensor([[1.0, torch.nan]])])
def test_a_gradient_that_is_none_or_no_number_is_refused(norms):
    with pytest.raises(DivergedError, match="does not reach"):
        probes.spread(norms)


@pytest.mark.parametrize("name", ["nothing", "unused"])
def test_latents_that_a_model_lacks_are_refused_by_name(name):
    model = Toy("own")
    model.unused = nn.Linear(1, 1)
    with pytest.raises(DataError, match=f"'{name}'"):
        probes.latent_gradients(model, batch(), name)


@pytest.mark.parametrize("name", list(probes.LATENTS))
def test_the_models_have_the_latents_that_the_table_names(name):
    torch.manual_seed(0)
    model = build(name, x_dim=2, i_dim=1, o_dim=1).eval()
    norms = probes.latent_gradients(model, batch(points=9), probes.LATENTS[name])
    found = probes.spread(norms)
    assert len(norms) == 5 and norms.shape[1] > 1
    if name == "msa":  # its last layer's tokens are read one by one
        assert (found["effective"] == 1).all()
    if name in ("gen", "perceiver"):
        assert (found["effective"] > 1.5).all()


class Offsets(nn.Module):
    """An answer of its own for each target: an error planted at one of T moves nothing else."""

    def __init__(self, targets: int):
        super().__init__()
        self.answers = nn.Parameter(torch.zeros(targets, 1))

    def forward(self, given: Batch) -> Prediction:
        return Prediction(self.answers.expand(len(given.target_x), -1, -1))


def test_updates_to_correct_are_those_of_adam_on_one_number():
    """Independently in numpy: one number moves towards 5 by Adam; the others have no gradient.
    Stops below 25 r^2 / T < goal."""
    x, m, v, steps = 0.0, 0.0, 0.0, 0
    while (x - 5) ** 2 / 6 >= 0.01:
        g, steps = 2 * (x - 5) / 6, steps + 1
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        x -= 0.05 * (m / (1 - 0.9**steps)) / (np.sqrt(v / (1 - 0.999**steps)) + 1e-8)
    model = Offsets(6)
    assert (
        probes.updates_to_correct(model, batch(2), 1000, rate=0.05) == [steps, steps]
        and 90 < steps < 500
    )
    assert probes.updates_to_correct(model, batch(1), steps, rate=0.05) == [steps]
    assert probes.updates_to_correct(model, batch(1), steps - 1, rate=0.05) == [None]
    assert (model.answers == 0).all()  # the weights stay


def test_an_error_below_the_goal_needs_no_update():
    assert probes.updates_to_correct(Offsets(6), batch(3), 10, error=0.2) == [0, 0, 0]


def test_entangled_answers_take_longer_to_correct():
    """With one number for all answers the error cannot be undone at all: four others would have
    to be wrong."""

    class One(Offsets):
        def forward(self, given):
            return Prediction(
                self.answers[:1].expand(len(given.target_x), given.target_x.shape[1], -1)
            )

    assert probes.updates_to_correct(One(6), batch(1), 400, rate=0.05) == [None]


def test_input_gradients_of_a_linear_reader():
    """A model that answers with a weighted sum of the context has those weights as gradients."""

    class Weighted(nn.Module):
        def forward(self, given):
            return Prediction(
                (given.context_y * torch.arange(1.0, 7)[:, None])
                .sum(1, keepdim=True)
                .expand(-1, 6, -1)
            )

    torch.testing.assert_close(
        probes.input_gradients(Weighted(), batch()), torch.arange(1.0, 7).expand(5, 6)
    )
    assert (probes.input_gradients(Offsets(6), batch()) == 0).all()


def test_hulls_of_one_and_two_components():
    context = np.array([[[0.0], [2], [1]], [[5], [5], [5]]])
    predicted = np.array([[[-0.1], [0], [2], [2.1]], [[5], [5], [4], [6]]])
    assert probes.outside(context, predicted).tolist() == [
        [True, False, False, True],
        [False, False, True, True],
    ]
    square = np.array([[[0.0, 0], [1, 0], [0, 1], [1, 1]]])
    assert probes.outside(
        square, np.array([[[0.5, 0.5], [1.1, 0.5], [1, 1], [-1, -1]]])
    ).tolist() == [[False, True, False, True]]


def test_averages_with_positive_weights_stay_in_the_hull():
    draw = np.random.default_rng(0)
    context = draw.normal(size=(20, 8, 2)).astype(np.float32)
    weights = draw.dirichlet(np.ones(8), (20, 30)).astype(np.float32)
    assert not probes.outside(context, weights @ context).any()


def test_a_narrow_context_holds_the_nearest_points_and_nothing_else():
    given, scale = batch(4, 12), torch.tensor([1.0, 3.0])
    centre = torch.tensor([0, 5, 11, 3])
    narrow, distance = probes.tight(given, centre, 4, scale)
    for number in range(4):
        places = (given.context_x[number] / scale).numpy()
        order = np.argsort(np.linalg.norm(places - places[centre[number]], axis=1))[:4]
        assert order[0] == centre[number]
        assert {tuple(row) for row in narrow.context_x[number].tolist()} == {
            tuple(row) for row in given.context_x[number][order].tolist()
        }
        assert sorted(narrow.context_y[number, :, 0].tolist()) == sorted(
            given.context_y[number, order, 0].tolist()
        )
        expected = np.linalg.norm(
            (given.target_x[number] / scale).numpy() - places[centre[number]], axis=1
        )
        assert distance[number].numpy() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 1.0])
def test_contexts_come_from_the_regions_in_the_share_that_is_asked(share):
    given, middle = batch(30, 40), torch.tensor([0.1, -0.2])
    chosen, asked, usable = probes.regions(given, middle, share, 4, torch.arange)
    assert 10 < len(usable) < 30 or len(usable) == 30
    above, below = (chosen.context_x > middle).all(2), (chosen.context_x < middle).all(2)
    assert (above.sum(1) == round(4 * share)).all() and (below.sum(1) == 4 - round(4 * share)).all()
    assert torch.equal(asked, (given.target_x[usable] > middle).all(2)) and asked.any(1).all()
    for row, number in enumerate(usable.tolist()):  # values stay with their places
        told = dict(
            zip(
                map(tuple, given.context_x[number].tolist()),
                given.context_y[number, :, 0].tolist(),
                strict=True,
            )
        )
        assert all(
            told[tuple(x)] == y
            for x, y in zip(
                chosen.context_x[row].tolist(), chosen.context_y[row, :, 0].tolist(), strict=True
            )
        )


def test_sets_without_enough_points_in_both_regions_are_left_out():
    chosen, asked, usable = probes.regions(
        batch(5, 6), torch.tensor([50.0, 50.0]), 0.5, 2, torch.arange
    )
    assert len(usable) == 0 and chosen.context_x.shape == (0, 2, 2) and asked.shape == (0, 6)


class Shifted(nn.Module):
    """The nearest context value, moved by its only parameter."""

    def __init__(self, shift: float):
        super().__init__()
        self.shift = nn.Parameter(torch.tensor([shift]))

    def forward(self, given: Batch) -> Prediction:
        near = (given.target_x[:, :, None] - given.context_x[:, None]).norm(dim=3).argmin(2)
        return Prediction(torch.take_along_dim(given.context_y, near[..., None], 1) + self.shift)


@pytest.mark.parametrize(("shift", "planted"), [(0.0, True), (0.05, True), (0.2, False)])
def test_an_error_is_planted_only_where_the_answers_are_right_before(shift, planted):
    class Sets:
        group = torch.arange(5)

        def batch(self, numbers, targets):
            whole = batch()
            return Batch(*(value[numbers] for value in vars(whole).values()))

    told = failures.correction(
        failures.Probed(
            Shifted(shift), "shifted", Sets(), torch.arange(5), 6, "1", torch.ones(1), 50, 0, 20
        )
    )
    if not planted:
        assert told == {}
    else:  # one parameter cannot move one answer alone
        assert told["steps"]["value"] == 20 and told["steps"]["capped"]
