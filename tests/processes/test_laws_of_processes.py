"""What makes a neural process special: shifts, turns, blocks, coherent samples, and memory that
grows as it should."""

import pytest
import torch

from stages import seeds
from stages.batches import Batch, single
from stages.fields.models import build
from stages.fields.models.neural_process import Coherent
from stages.fields.processes.laws import Peak
from stages.layers.relative import FORMS, PAIRS, RelativeAttention, block_sizes

EQUIVARIANT = [
    ("tetnp", {"form": "post"}),
    ("tetnp", {"form": "pre"}),
    ("tetnp", {"form": "rbf"}),
    ("tetnp", {"form": "identity"}),
    ("tetnp", {"turned": 1}),
    ("tetnp", {"heads": 2, "head_width": 3}),
    ("pseudo_tnp", {"scheme": "perceiver", "equivariant": 1}),
    ("pseudo_tnp", {"scheme": "induced", "equivariant": 1}),
    ("convcnp", {"density": 8, "kernel": 5, "layers": 3}),
]


def drawn(axes: int, contexts: int = 20, targets: int = 15, dtype=torch.float32) -> Batch:
    generator = seeds.torch_stream(0, "processes", axes, contexts, targets)

    def uniform(count, width):
        return 4 * torch.rand(count, width, generator=generator, dtype=torch.float64) - 2

    x, y, t = uniform(contexts, axes), uniform(contexts, 1), uniform(targets, axes)
    return single(x.to(dtype), y.to(dtype), t.to(dtype))


def made(name, arguments, axes, dtype=torch.float32):
    seeds.everything(0)
    return build(name, arguments, None, axes, 1, 1).to(dtype)


def moved(batch: Batch, matrix=None, by=0.0) -> Batch:
    def one(x):
        return (x if matrix is None else x @ matrix) + by

    return Batch(one(batch.context_x), batch.context_y, batch.context_mask, one(batch.target_x),
                 batch.target_mask)  # fmt: skip


def differ(model, one: Batch, other: Batch) -> float:
    """The most that mean or standard deviation differ."""
    with torch.no_grad():
        a, b = model(one), model(other)
    return max(float((a.mean - b.mean).abs().max()), float((a.scale - b.scale).abs().max()))


@pytest.mark.parametrize("axes", [1, 2])
@pytest.mark.parametrize(("name", "arguments"), EQUIVARIANT)
def test_a_shift_of_all_points_changes_nothing(name, arguments, axes):
    for dtype, most in ((torch.float32, 1e-5), (torch.float64, 1e-10)):
        batch = drawn(axes, dtype=dtype)
        assert differ(made(name, arguments, axes, dtype), batch, moved(batch, by=3.0)) < most


def test_heads_of_their_own_width_are_those_of_the_tokens_at_the_same_width():
    plain = made("tetnp", {"width": 32, "heads": 4}, 1)
    free = made("tetnp", {"width": 32, "heads": 4, "head_width": 8}, 1)
    free.load_state_dict(plain.state_dict())
    ours, theirs = plain(drawn(1)), free(drawn(1))
    assert torch.equal(ours.mean, theirs.mean) and torch.equal(ours.scale, theirs.scale)
    narrow = made("tetnp", {"width": 32, "heads": 4, "head_width": 3}, 1)
    assert narrow.layers[0].mixing.key_value.weight.shape == (24, 32)
    empty = drawn(1, contexts=0)
    with torch.no_grad():
        mean = narrow(empty).mean
    assert mean.isfinite().all() and float((mean - mean[:, :1]).abs().max()) < 1e-6


def test_what_is_not_equivariant_does_change():
    for name, arguments in (("tnp", {}), ("pseudo_tnp", {}), ("neural_process", {})):
        assert differ(made(name, arguments, 1), drawn(1), moved(drawn(1), by=3.0)) > 1e-3


@pytest.mark.parametrize("form", FORMS)
def test_a_turn_of_the_plane_changes_nothing_where_distances_alone_are_read(form):
    angle = torch.tensor(0.7, dtype=torch.float64)
    turn = torch.stack((angle.cos(), -angle.sin(), angle.sin(), angle.cos())).view(2, 2)
    for dtype, most in ((torch.float32, 1e-5), (torch.float64, 1e-10)):
        batch = drawn(2, dtype=dtype)
        other = moved(batch, turn.to(dtype), 1.0)
        assert differ(made("tetnp", {"form": form, "turned": 1}, 2, dtype), batch, other) < most
    if form != "rbf":  # which reads distances anyway
        plain = made("tetnp", {"form": form}, 2)
        assert differ(plain, drawn(2), moved(drawn(2), turn.float())) > 1e-4


@pytest.mark.parametrize("mixing", ["attention", "linear", "hyper"])
def test_an_answer_does_not_depend_on_what_else_is_asked(mixing):
    model, batch = made("tnp", {"mixing": mixing}, 1), drawn(1)
    alone = Batch(batch.context_x, batch.context_y, batch.context_mask, batch.target_x[:, :1],
                  batch.target_mask[:, :1])  # fmt: skip
    torch.testing.assert_close(model(alone).mean, model(batch).mean[:, :1], atol=1e-6, rtol=1e-5)


# --- relative attention in blocks


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_blocks_change_no_answer_and_no_gradient(form, turned):
    generator = seeds.torch_stream(0, "blocks")
    seeds.everything(0)
    layer = RelativeAttention(2, 16, 4, 8, form, turned)
    real = torch.rand(2, 17, generator=generator) > 0.3
    real[1] = False
    query_x, key_x = (torch.randn(2, n, 2, generator=generator) for n in (13, 17))
    tokens = [torch.randn(2, n, 16, generator=generator) for n in (13, 17)]
    found = []
    for pairs in (1 << 62, 30, 2):
        layer.pairs = pairs
        given = [one.clone().requires_grad_() for one in tokens]
        layer.zero_grad()
        out = layer(*given, real, query_x, key_x)
        out.square().sum().backward()
        found.append([out, *(one.grad for one in (*given, *layer.parameters()))])
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            torch.testing.assert_close(one, two, atol=1e-6, rtol=2e-5)


def test_attention_by_differences_is_the_softmax_of_its_logits():
    """Against the equation, pair by pair."""
    seeds.everything(1)
    layer = RelativeAttention(1, 8, 2, 4, "post")
    query, memory = torch.randn(1, 3, 8), torch.randn(1, 5, 8)
    query_x, memory_x = torch.randn(1, 3, 1), torch.randn(1, 5, 1)
    found = layer(query, memory, torch.ones(1, 5, dtype=torch.bool), query_x, memory_x)
    key, value = layer.key_value(memory)[0].chunk(2, -1)
    asked, rows = layer.query(query)[0], []
    for i in range(3):
        logits = torch.stack([
            layer.logits.network(torch.cat((
                torch.stack([asked[i, h] @ key[j, h] / 2 for h in (slice(0, 4), slice(4, 8))]),
                query_x[0, i] - memory_x[0, j],
            )))
            for j in range(5)
        ])  # fmt: skip
        weight = logits.softmax(0)
        rows.append(torch.cat([weight[:, h] @ value[:, 4 * h : 4 * h + 4] for h in (0, 1)]))
    torch.testing.assert_close(found[0], layer.outward(torch.stack(rows)), atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("counts", [(1, 10, 10**6), (16, 96, 64), (1, 5000, 5000), (4096, 8, 8)])
def test_a_block_holds_not_more_pairs_than_it_may(counts):
    queries, keys = block_sizes(*counts, PAIRS)
    assert queries >= 1 and keys >= 1
    assert counts[0] * queries * keys <= max(PAIRS, counts[0])


# --- memory


def most(model, contexts: int, axes: int = 1) -> int:
    with torch.no_grad(), Peak() as peak:
        model(drawn(axes, contexts, 10))
    return peak.most


def test_tetnp_holds_what_is_linear_in_its_points_and_with_all_pairs_what_is_quadratic():
    model = made("tetnp", {"layers": 1}, 1)
    assert most(model, 800) < 2.2 * most(model, 400)
    for part in model.modules():
        if isinstance(part, RelativeAttention):
            part.pairs = 1 << 62
    assert most(model, 800) > 3.5 * most(model, 400) > 20 * most(made("tnp", {}, 1), 400)


def test_the_grid_of_convcnp_grows_with_the_axes():
    size = {"density": 8, "kernel": 5, "width": 8, "layers": 2}
    assert most(made("convcnp", size, 2), 10, 2) > 10 * most(made("convcnp", size, 1), 10)


def test_what_is_counted_is_the_most_that_lives_at_once():
    with Peak() as peak:
        one = torch.zeros(1000)
        two = one + 1
        del one
        three = two.view(10, 100) + 1
    assert (peak.most, peak.live) == (8000, 8000) and three.shape == (10, 100)


# --- the latent one


@pytest.mark.parametrize("latent", ["bound", "weighted"])
def test_a_sample_of_the_latent_process_is_one_function(latent):
    model = made("neural_process", {"latent": latent}, 1)
    law = model(drawn(1))
    assert isinstance(law, Coherent)
    apart = law.means - law.means.mean(-1, keepdim=True)
    told = Coherent(law.logits, law.means, torch.full_like(law.scales, 1e-6))
    drawn_ones = told.sample(64, seeds.torch_stream(0, "samples"))
    gap = (drawn_ones[..., None] - law.means).abs()[:, 0, :, 0]
    assert (gap.amax(1).amin(-1) < 1e-4).all(), "one member fits at all targets"
    assert apart.abs().max() > 1e-4


def test_the_weighted_likelihood_is_that_of_the_mixture_over_whole_tasks():
    """One task, one target: the bound over 16 draws lies below the likelihood of very many, and
    near it."""
    model = made("neural_process", {"latent": "weighted", "width": 16}, 1)
    batch = drawn(1, 10, 1)
    batch = Batch(*(getattr(batch, name) for name in list(vars(batch))[:5]), torch.zeros(1, 1, 1))
    seeds.everything(2)
    with torch.no_grad():
        loss = float(torch.stack([model.loss(batch) for _ in range(400)]).mean())
        model.draws = torch.nn.Buffer(torch.randn(20_000, 16))
        exact = -float(model(batch).log_prob(batch.target_y).mean())
    assert exact - 0.01 < loss < exact + 0.05
