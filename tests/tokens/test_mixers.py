"""The laws of the mixers: padding, order, growth, tied weights, counts of weights and of FLOPs; the
layouts as their equations print them."""

import math

import pytest
import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from stages import seeds
from stages.errors import InputError
from stages.layers.hypermixing import HyperMixing
from stages.params import load
from stages.tokens import costs
from stages.tokens.contract import Batch
from stages.tokens.models import build, names
from stages.tokens.parts.attending import LinearAttention, SelfAttention
from stages.tokens.parts.dynamic import DynamicMLP
from stages.tokens.parts.fixed import Fourier, SpatialGating, TokenMLP, Unmixed
from stages.tokens.parts.frame import LAYOUTS, Frame, Layer
from stages.tokens.parts.hyper import HyperMix, WeightVector
from stages.training import cells

WIDTH, LONGEST = 16, 24
LABEL = {"task": "label", "vocabulary": 17, "outputs": 3, "longest": 13}
VALUE = {"task": "value", "vocabulary": 1, "outputs": 1, "longest": 100}
NEXT = {"task": "next", "vocabulary": 18, "outputs": 18, "longest": 28}
MADE = {
    "hyper": lambda: HyperMix(WIDTH, 32, 1, True, "layer", False),
    "hyper_untied": lambda: HyperMix(WIDTH, 32, 1, False, "none", False),
    "hyper_heads": lambda: HyperMix(WIDTH, 32, 4, True, "length", False),
    "hyper_placed": lambda: HyperMix(WIDTH, 32, 2, False, "length", True),
    "attention": lambda: SelfAttention(WIDTH, 4, False),
    "attention_unscaled": lambda: SelfAttention(WIDTH, 4, False, scaled=False),
    "attention_causal": lambda: SelfAttention(WIDTH, 4, True),
    "linear_attention": lambda: LinearAttention(WIDTH, 4),
    "token_mlp": lambda: TokenMLP(WIDTH, LONGEST, 8),
    "gating": lambda: SpatialGating(WIDTH, LONGEST, 8),
    "vector": lambda: WeightVector(WIDTH, 32),
    "unmixed": lambda: Unmixed(),
    "hyper_mlp": lambda: DynamicMLP(WIDTH, LONGEST, 2, 8, 12, 3, False),
    "hyper_glu": lambda: DynamicMLP(WIDTH, LONGEST, 2, 8, 12, 3, True),
}
ORDERED = {"hyper_placed", "attention_causal", "token_mlp", "gating",
           "hyper_mlp", "hyper_glu"}  # fmt: skip  # who know a token's place
each = pytest.mark.parametrize("name", MADE)


def drawn(*shape, name="tokens"):
    return torch.randn(*shape, generator=seeds.torch_stream(0, name, *shape))


def made(name):
    seeds.everything(1)
    mixer = MADE[name]()
    with torch.no_grad():  # no zero bias, no gate of one alone: nothing hides
        for one in mixer.parameters():
            one.add_(0.1 * torch.randn_like(one))
    return mixer


@each
def test_padding_changes_nothing(name):
    mixer, tokens = made(name), drawn(2, 9, WIDTH)
    padded = torch.cat((tokens, 1e3 * drawn(2, 5, WIDTH, name="padding")), 1)
    real = torch.arange(14)[None].expand(2, -1) < 9
    found = mixer(padded, real)[:, :9]
    torch.testing.assert_close(found, mixer(tokens, real[:, :9]), atol=1e-6, rtol=1e-6)


@each
def test_without_places_order_does_not_matter_and_with_them_it_does(name):
    mixer, tokens, order = made(name), drawn(2, 9, WIDTH), torch.tensor([3, 1, 8, 0, 7, 5, 2, 6, 4])
    real = torch.ones(2, 9, dtype=torch.bool)
    gap = (mixer(tokens[:, order], real) - mixer(tokens, real)[:, order]).abs().max()
    assert gap > 1e-3 if name in ORDERED else gap < 1e-5


def test_a_transform_refuses_padding_and_is_the_sum_that_it_stands_for():
    tokens, real = drawn(1, 5, 4), torch.ones(1, 5, dtype=torch.bool)

    def turn(n):
        return torch.exp(-2j * math.pi * torch.outer(torch.arange(n), torch.arange(n)) / n)

    expected = (turn(5) @ tokens[0].to(torch.complex64) @ turn(4)).real / 20**0.5
    torch.testing.assert_close(Fourier()(tokens, real)[0], expected, atol=1e-5, rtol=1e-5)
    with pytest.raises(InputError, match="1 tokens of padding"):
        Fourier()(tokens, torch.arange(5)[None] < 4)


def test_the_transform_labels_each_row_by_its_own_tokens_whatever_stands_beside_it():
    seeds.everything(0)
    network = build("fnet", {"width": WIDTH, "feed": 32, "layout": "post_norm"}, LABEL)
    inputs = torch.randint(1, 17, (5, 9), generator=seeds.torch_stream(0, "words"))
    real = torch.arange(9)[None] < torch.tensor([4, 9, 4, 7, 1])[:, None]
    targets = torch.zeros(5, dtype=torch.long)
    found = network(Batch(inputs * real, real, targets, real)).values
    for row, count in enumerate(real.sum(1).tolist()):
        alone = inputs[row : row + 1, :count]
        whole = torch.ones(1, count, dtype=torch.bool)
        expected = network(Batch(alone, whole, targets[:1], whole)).values
        torch.testing.assert_close(found[row : row + 1], expected, atol=1e-6, rtol=1e-5)
    holed = real & (torch.arange(9) != 2)
    with pytest.raises(InputError, match="cannot leave padding out"):
        network(Batch(inputs, holed, targets, holed))


@pytest.mark.parametrize("heads", [1, 4])
def test_tied_is_untied_with_copied_weights(heads):
    seeds.everything(0)
    tied = HyperMix(WIDTH, 32, heads, True, "layer", True)
    untied = HyperMix(WIDTH, 32, heads, False, "layer", True)
    untied.mixing.into.load_state_dict(tied.mixing.into.state_dict())
    untied.mixing.out_of.load_state_dict(tied.mixing.into.state_dict())
    tokens, real = drawn(2, 7, WIDTH), torch.ones(2, 7, dtype=torch.bool)
    torch.testing.assert_close(tied(tokens, real), untied(tokens, real), atol=0, rtol=0)


def test_hypermixing_is_the_one_of_the_house():
    seeds.everything(0)
    ours, theirs = HyperMix(WIDTH, 32, 2, False, "layer", False), HyperMixing(WIDTH, 32, 2, False)
    theirs.load_state_dict(ours.mixing.state_dict())
    tokens, real = drawn(2, 7, WIDTH), torch.arange(7)[None].expand(2, -1) < 5
    torch.testing.assert_close(ours.read(tokens, real, 3), theirs(tokens, real, 3), atol=0, rtol=0)


def test_length_norm_divides_both_matrices_by_the_number_of_real_keys():
    seeds.everything(0)
    ours, bare = (HyperMix(WIDTH, 32, 1, True, norm, False) for norm in ("length", "none"))
    bare.load_state_dict(ours.state_dict())
    tokens, real = drawn(1, 6, WIDTH), torch.arange(6)[None] < 4
    rows = bare.mixing.into(tokens[:, None])[0, 0] / 4
    hidden = nn.functional.gelu(rows[:4].T @ tokens[0, :4])
    torch.testing.assert_close(ours(tokens, real)[0], rows @ hidden, atol=1e-6, rtol=1e-5)


def test_linear_attention_is_the_quadratic_sum():
    seeds.everything(0)
    mixer, tokens = LinearAttention(8, 1), drawn(1, 6, 8)
    query, key, value = mixer.inward(tokens)[0].chunk(3, -1)
    weight = (nn.functional.elu(query) + 1) @ (nn.functional.elu(key) + 1).T
    expected = mixer.outward(weight / weight.sum(1, keepdim=True) @ value)
    found = mixer(tokens, torch.ones(1, 6, dtype=torch.bool))[0]
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-5)


def test_unscaled_attention_is_the_softmax_of_bare_products():
    seeds.everything(0)
    mixer, tokens = SelfAttention(8, 1, False, scaled=False), drawn(1, 6, 8)
    query, key, value = mixer.inward(tokens)[0].chunk(3, -1)
    expected = mixer.outward((query @ key.T).softmax(1) @ value)
    found = mixer(tokens, torch.ones(1, 6, dtype=torch.bool))[0]
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-5)


def test_one_weight_vector_is_hypermixing_of_copied_rows():
    mixer, tokens = made("vector"), drawn(1, 6, WIDTH)
    into, out_of = (one.expand(6, -1) for one in (mixer.into, mixer.out_of))
    expected = mixer.norm(out_of @ nn.functional.gelu(into.T @ tokens[0]))
    found = mixer(tokens, torch.ones(1, 6, dtype=torch.bool))[0]
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("glu", [False, True])
def test_hyper_mlp_is_the_two_layers_that_its_equations_make_of_each_token(glu):
    mixer = made("hyper_glu" if glu else "hyper_mlp")
    tokens, ways, heads = drawn(1, 7, WIDTH), 1 + glu, 2
    queries, keys, gates, values, passed, shares = mixer.inward(tokens)[0].split(mixer.sizes, 1)

    def of(features, part, parts):
        return features.chunk(parts, 1)[part]

    expected = torch.zeros(7, mixer.value)
    for head in range(heads):

        def mixed(number, token, head=head):  # R of a token
            share = of(shares, number * heads + head, (ways + 1) * heads)[token].sigmoid()
            down, up = (one[number, head, :7] for one in (mixer.down, mixer.up))
            own = torch.diag(1 + mixer.own[number, head, 0, :7])
            return own + down @ torch.diag(share) @ up.T

        for token in range(7):
            layers = []
            for way in range(ways):
                query, key, gate = (
                    of(one, way * heads + head, ways * heads) for one in (queries, keys, gates)
                )
                first = (query[token] * gate[token].sigmoid()) @ key.T @ mixed(way, token)
                layers.append(first)
            hidden = (layers[0] / layers[0].norm()).relu()
            if glu:
                hidden = hidden * nn.functional.softplus(layers[1])
            part = slice(6 * head, 6 * head + 6)
            read = hidden @ mixed(ways, token) @ values[:, part]
            expected[token, part] = read * passed[token, part].sigmoid()
    found = mixer(tokens, torch.ones(1, 7, dtype=torch.bool))[0]
    torch.testing.assert_close(found, mixer.outward(expected), atol=1e-5, rtol=1e-5)


def test_hyper_mlp_tells_which_parts_its_features_do_not_make():
    given = {"width": 16, "heads": 2, "route": 6, "read": 7, "glu": 1}
    with pytest.raises(InputError, match=r"route 6 is not a multiple of 4[\s\S]*read 7"):
        build("hyper_mlp", given, LABEL)


# --- costs


def counted(mixer, count, width):
    math_alone = sdpa_kernel(SDPBackend.MATH)  # of products that the counter sees
    with FlopCounterMode(display=False) as counter, math_alone:
        mixer(drawn(1, count, width), torch.ones(1, count, dtype=torch.bool))
    return counter.get_total_flops()


@each
def test_the_formula_of_flops_is_what_torch_counts(name, monkeypatch):
    monkeypatch.setattr("stages.layers.kernels.attention.takes", lambda *_: False)  # not counted
    mixer = made(name)
    if isinstance(mixer, SelfAttention):
        mixer.lanes = 0  # the zeros that fill up a head are products, too
    expected = mixer.flops(LONGEST)
    assert counted(mixer, LONGEST, WIDTH) == pytest.approx(expected, rel=0.02)


def test_hypermixing_grows_linearly_attention_and_hyper_mlp_with_the_square():
    grown = {}
    for name in ("hypermixing", "linear_attention", "self_attention", "hyper_mlp"):
        mine = costs.curves()[name]
        grown[name] = math.log(mine["65536"] / mine["1024"]) / math.log(64)
    assert grown["hypermixing"] <= 1.1 and grown["linear_attention"] <= 1.1
    assert min(grown["self_attention"], grown["hyper_mlp"]) > 1.8


def test_mixers_cross_attention_where_they_first_have_fewer_flops():
    found = costs.crossings()
    assert "mlp_mixer" not in found and "self_attention" not in found
    for name, first in found.items():
        mixer, attention = (costs.mixers()[one][0] for one in (name, "self_attention"))
        assert mixer.flops(first) < attention.flops(first)
        assert first == 1 or mixer.flops(first - 1) >= attention.flops(first - 1)
    assert found["hypermixing"] == 385


@pytest.mark.parametrize("name", ["hypermixing", "linear_attention"])
def test_the_flops_of_a_network_are_what_torch_counts_of_one_example(name):
    model = build(name, {"width": 32, "feed": 64, "layers": 2, "layout": "post_norm"}, LABEL)
    inputs = torch.ones(1, LONGEST, dtype=torch.long)
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        model.network(inputs, inputs > 0)
    expected = costs.example(model.network, LONGEST)
    assert counter.get_total_flops() == pytest.approx(expected, rel=0.02)


def test_no_tensor_of_tokens_by_tokens_is_kept_by_hypermixing():
    mixer = made("hyper")

    def kept(count):
        sizes = []
        with torch.autograd.graph.saved_tensors_hooks(
            lambda saved: sizes.append(saved.numel()) or saved, lambda saved: saved
        ):
            tokens = drawn(1, count, WIDTH).requires_grad_()
            mixer(tokens, torch.ones(1, count, dtype=torch.bool))
        return sum(sizes)

    assert kept(2048) < 2.001 * kept(1024)


# --- the frame


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_are_equations_b_3_to_b_11(layout):
    seeds.everything(0)
    frame = Frame("label", 5, 2, 9, WIDTH, 1, 8, layout)
    layer, real = Layer(frame, MADE["hyper"]), torch.ones(2, 6, dtype=torch.bool)
    x = drawn(2, 6, WIDTH)
    mix, feed = (lambda tokens: layer.mix(tokens, real)), layer.feed
    if layout == "rezero":
        torch.testing.assert_close(layer(x, real), x)
        with torch.no_grad():
            layer.share.copy_(torch.tensor([0.7, 0.3]))
        one = x + 0.7 * mix(x)
        expected = one + 0.3 * feed(one)
    else:
        norm = layer.norms
        expected = {
            "post_norm": lambda: norm[1]((y := norm[0](x + mix(x))) + feed(y)),
            "pre_norm": lambda: (y := x + mix(norm[0](x))) + feed(norm[1](y)),
            "parallel": lambda: x + mix(norm[0](x)) + feed(norm[0](x)),
            "serialized": lambda: x + feed(norm[1](x + mix(norm[0](x)))),
        }[layout]()
    torch.testing.assert_close(layer(x, real), expected)


DRAWS = {"grid_attention"}  # says no label: tests/tokens/test_grid_attention.py
COMPARED = ("hypermixing-tied-w32", "hypermixing-tied-w32_heads", "self_attention-post_norm-w32",
            "linear_attention-post_norm-w32", "mlp_mixer-post_norm-w32",
            "gmlp-post_norm-w32", "hyper_mlp-mlp-w32", "hyper_mlp-glu-w32")  # fmt: skip


def weights(name, dimensions):
    model, arm, size = name.split("-")
    chosen = cells.arguments(cells.Cell(model, arm, size, 0), load())
    return sum(one.numel() for one in build(model, chosen, dimensions).parameters())


def test_mixers_that_are_compared_have_as_many_weights():
    counts = {name: weights(name, LABEL) for name in COMPARED}
    assert (
        counts["hypermixing-tied-w32"] == 17667 and counts["self_attention-post_norm-w32"] == 17795
    )
    assert max(counts.values()) <= 1.05 * min(counts.values()), counts
    shapes = {name: weights(f"{name}-w24", VALUE) for name in
              ("hypermixing-tied", "self_attention-post_norm", "mlp_mixer-post_norm")}  # fmt: skip
    assert max(shapes.values()) <= 1.05 * min(shapes.values()), shapes


@pytest.mark.parametrize("name", [name for name in names() if name not in DRAWS])
def test_a_batch_is_its_rows_and_every_weight_learns(name):
    seeds.everything(0)
    model = build(name, {"width": 16, "feed": 16}, LABEL)
    inputs = torch.randint(1, 17, (3, 13), generator=seeds.torch_stream(0, "words"))
    batch = Batch(inputs, inputs > 0, inputs[:, 0], inputs > 0)
    said = model(batch).values
    alone = Batch(inputs[1:2], inputs[1:2] > 0, inputs[1:2, 0], inputs[1:2] > 0)
    torch.testing.assert_close(model(alone).values[0], said[1], atol=1e-5, rtol=1e-5)
    said.square().sum().backward()
    silent = [key for key, one in model.named_parameters()
              if one.grad is None or not one.grad.abs().max() > 0]  # fmt: skip
    assert silent == []


def test_no_token_hears_of_those_to_come_where_the_next_is_said():
    seeds.everything(0)
    model = build("self_attention", {"width": 16, "layout": "pre_norm"}, NEXT)
    inputs = torch.randint(1, 18, (2, 28), generator=seeds.torch_stream(0, "pictures"))
    real = torch.ones_like(inputs, dtype=torch.bool)
    changed = inputs.clone()
    changed[:, 15:] = 1
    one, other = (model(Batch(x, real, x, real)).values for x in (inputs, changed))
    torch.testing.assert_close(one[:, :15], other[:, :15])
    assert (one[:, 15:] - other[:, 15:]).abs().max() > 1e-3
    with pytest.raises(InputError, match="hears of tokens to come"):
        build("hypermixing", {"width": 16}, NEXT)
