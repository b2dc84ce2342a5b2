"""The networks: default gates are the textbook's, a learned rate of 0 and 1 keeps and updates,
nothing looks ahead, pieces make a whole, and a free run is recomputation."""

import pytest
import torch
from torch import nn

from stages import seeds
from stages.dynamics.contract import Batch
from stages.dynamics.free_run import LIMIT, free_run
from stages.dynamics.models import build, names
from stages.dynamics.parts.attention import Attention
from stages.dynamics.parts.gates import MAPS, Gate, Residual
from stages.errors import InputError
from stages.training import store

WIDE, SCALE = 5, 0.3
SMALL = {"width": 8, "layers": 2, "heads": 2}
VARIANTS = [
    *((cell, {"gate": gate}) for cell in ("lstm", "gru", "rhn") for gate in MAPS),
    *((cell, {"attention": kind, "bias": bias})
      for cell in ("lstm", "gru", "rhn")
      for kind, bias in (("self", "none"), ("input", "distance"), ("previous", "content"))),
    ("gru", {"reset": "before"}),
    ("rhn", {"depth": 3}),
    *(("transformer", {"order": order, "gate": gate, "bias": bias})
      for order, gate, bias in (("pre", "additive", "distance"), ("post", "dependent", "content"),
                                ("pre", "coupled", "none"), ("post", "rate", "distance"))),
    *(("recurrent_transformer", {"order": order, "gate": gate})
      for order, gate in (("pre", "additive"), ("post", "dependent"))),
]  # fmt: skip
CALLED = [f"{name}-{'-'.join(map(str, given.values()))}" for name, given in VARIANTS]
each = pytest.mark.parametrize(("name", "given"), VARIANTS, ids=CALLED)
STATEFUL = [one for one in zip(VARIANTS, CALLED, strict=True) if one[0][0] != "transformer"]
each_stateful = pytest.mark.parametrize(
    ("name", "given"), [one for one, _ in STATEFUL], ids=[called for _, called in STATEFUL]
)


def made(name: str, given=None, **more):
    torch.manual_seed(0)
    span = 4 if name == "recurrent_transformer" else 6
    return build(name, {**SMALL, "span": span, **(given or {}), **more}, WIDE, SCALE).double()


def drawn(*shape: int, name: str = "values") -> torch.Tensor:
    generator = seeds.torch_stream(0, name, *shape)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def close(one: torch.Tensor, other: torch.Tensor, within: float = 1e-6):
    torch.testing.assert_close(one, other, rtol=within, atol=within)


# --- the textbook's cells


def grads(outputs: torch.Tensor, weights) -> list[torch.Tensor]:
    return list(torch.autograd.grad(outputs.sin().sum(), list(weights)))


def test_the_default_lstm_is_torchs_in_values_and_gradients():
    model, theirs = made("lstm", layers=1), nn.LSTM(WIDE, 8, batch_first=True).double()
    h, cell = 8, model.layers[0].cell
    with torch.no_grad():  # ours: candidate, output, input, forget; theirs: i, f, g, o
        for ours, other in ((cell.inward.weight, theirs.weight_ih_l0),
                            (cell.across.weight, theirs.weight_hh_l0),
                            (cell.inward.bias, theirs.bias_ih_l0)):  # fmt: skip
            i, f, g, o = other.split(h)
            ours.copy_(torch.cat((g, o, i, f)))
        theirs.bias_hh_l0.zero_()
    values = drawn(3, 7, WIDE)
    hidden, (last, memory) = theirs(values)
    found, carried = model.layers[0](values, values, None)
    close(found, hidden)
    close(carried.cell[0], last[0]), close(carried.cell[1], memory[0])
    ours = grads(found, (cell.inward.weight, cell.across.weight, cell.inward.bias))
    for mine, other in zip(
        ours, grads(hidden, (theirs.weight_ih_l0, theirs.weight_hh_l0, theirs.bias_ih_l0)),
        strict=True,
    ):  # fmt: skip
        i, f, g, o = other.split(h)
        close(mine, torch.cat((g, o, i, f)))


def test_the_default_gru_is_torchs_in_values_and_gradients():
    """Torch's update gate keeps where ours updates: the same gate with its sign changed."""
    model, theirs = made("gru", layers=1), nn.GRU(WIDE, 8, batch_first=True).double()
    h, cell = 8, model.layers[0].cell

    def turned(whole):
        r, z, n = whole.split(h)
        return torch.cat((n, r, -z))

    with torch.no_grad():
        cell.inward.weight.copy_(turned(theirs.weight_ih_l0))
        cell.across.weight.copy_(turned(theirs.weight_hh_l0))
        theirs.bias_hh_l0[: 2 * h].zero_()
        cell.inward.bias.copy_(turned(theirs.bias_ih_l0))
        cell.shift.copy_(theirs.bias_hh_l0[2 * h :])
    values = drawn(3, 7, WIDE)
    hidden, _ = theirs(values)
    found, _ = model.layers[0](values, values, None)
    close(found, hidden)
    ours = grads(found, (cell.inward.weight, cell.across.weight, cell.inward.bias, cell.shift))
    given = (theirs.weight_ih_l0, theirs.weight_hh_l0, theirs.bias_ih_l0, theirs.bias_hh_l0)
    *others, shift = grads(hidden, given)
    for mine, other in zip(ours, (*map(turned, others), shift[2 * h :]), strict=True):
        close(mine, other)


def test_the_printed_gru_resets_before_the_product():
    """Equation 7, number by number."""
    model = made("gru", layers=1, reset="before")
    cell, h = model.layers[0].cell, 8
    x, state = drawn(2, WIDE), drawn(2, h, name="state")
    w, u, b = cell.inward.weight, cell.across.weight, cell.inward.bias
    maps = [x @ w[k * h : (k + 1) * h].T + b[k * h : (k + 1) * h] for k in range(3)]
    r = (maps[1] + state @ u[h : 2 * h].T).sigmoid()
    z = (maps[2] + state @ u[2 * h :].T).sigmoid()
    candidate = (maps[0] + (r * state) @ u[:h].T + cell.shift).tanh()
    (found,) = cell.step(cell.enter(x[:, None])[:, 0], (state,))
    close(found, z * candidate + (1 - z) * state, 1e-12)


@pytest.mark.parametrize("gate", MAPS)
def test_the_highway_network_is_what_its_equations_say(gate):
    """Equations 9 to 12, with gates 22 to 25, written once more from the paper."""
    model, h = made("rhn", layers=1, depth=3, gate=gate), 8
    cell = model.layers[0].cell
    x, state = drawn(2, WIDE), drawn(2, h, name="state")
    w, b = cell.inward.weight, cell.inward.bias
    entered = x @ w.T + b
    hidden = (entered[:, :h] + state @ cell.across.weight.T).tanh()
    for depth, (inner, one) in enumerate(zip(cell.inner, (cell.gate, *cell.deeper), strict=True)):
        z = hidden @ inner.weight.T + inner.bias + (entered[:, h:] if depth == 0 else 0)
        s, carry = z[:, :h].tanh(), z[:, h:].sigmoid()
        hidden = {
            "additive": lambda s=s, y=hidden: s + y,
            "rate": lambda s=s, y=hidden, g=one: g.rate.sigmoid() * s + (1 - g.rate.sigmoid()) * y,
            "coupled": lambda s=s, y=hidden, g=carry: g * s + (1 - g) * y,
            "dependent": lambda s=s, y=hidden, g=carry: g[:, :h] * s + g[:, h:] * y,
        }[gate]()
    (found,) = cell.step(cell.enter(x[:, None])[:, 0], (state,))
    close(found, hidden, 1e-12)


# --- gates


def test_a_learned_rate_of_0_keeps_and_of_1_updates():
    update, state = drawn(4, 6, name="update"), drawn(4, 6, name="state")
    gate = Gate("rate", 6).double()
    for value, expected in ((-torch.inf, state), (torch.inf, update)):
        nn.init.constant_(gate.rate, value)
        torch.testing.assert_close(gate(update, state, update[:, :0]), expected, rtol=0, atol=0)


def test_gates_without_parameters_add_and_coupled_ones_stay_between():
    update, state = drawn(4, 6, name="update"), drawn(4, 6, name="state")
    close(Gate("additive", 6)(update, state, update[:, :0]), update + state, 1e-15)
    assert [sum(p.numel() for p in Gate(kind, 6).parameters()) for kind in MAPS] == [0, 6, 0, 0]
    drive = 9 * drawn(4, 6, name="drive")
    mixed = Gate("coupled", 6)(update, state, drive)
    low, high = torch.minimum(update, state), torch.maximum(update, state)
    assert ((mixed >= low - 1e-12) & (mixed <= high + 1e-12)).all()


def test_a_residual_gates_by_both_of_its_vectors():
    residual = Residual("coupled", 6).double()
    assert residual.drive.weight.shape == (6, 12)
    assert Residual("additive", 6).drive is None


# --- all networks


@each
def test_no_forecast_depends_on_what_comes_after_it(name, given):
    model, values = made(name, given).eval(), drawn(2, 9, WIDE).requires_grad_()
    said = model.run(values[:, :6] if name == "transformer" else values)[0]
    for time in range(said.shape[1]):
        (slope,) = torch.autograd.grad(said[:, time].sum(), values, retain_graph=True)
        assert not slope[:, time + 1 :].any() and slope[:, time].abs().max() > 0


@each_stateful
def test_a_run_in_pieces_is_the_run_in_one(name, given):
    model, values = made(name, given).eval(), drawn(2, 17, WIDE)
    assert model.stateful
    whole, end = model.run(values)
    found, state = [], None
    for piece in values.split((1, 5, 4, 7), 1):
        said, state = model.run(piece, state)
        found.append(said)
    close(torch.cat(found, 1), whole, 1e-10)
    close(model.run(values[:, :1], state)[0], model.run(values[:, :1], end)[0], 1e-10)


@each
def test_a_free_run_is_what_is_computed_anew_at_every_step(name, given):
    model, context = made(name, given).eval(), drawn(3, 8, WIDE)
    found, known = free_run(model, context, 7, 8), context
    for step in range(7):
        seen = known[:, -model.span :] if name == "transformer" else known
        with torch.no_grad():
            said = model.run(seen)[0][:, -1]
        close(found[:, step], said, 1e-10)
        known = torch.cat((known, said[:, None]), 1)


@each
def test_no_more_is_given_than_a_window_had_that_trained(name, given):
    model, context = made(name, given).eval(), drawn(3, 24, WIDE)
    found, alone = free_run(model, context, 5, 8), free_run(model, context[:, -8:], 5, 8)
    assert torch.equal(found, alone)
    longer = free_run(model, context, 5, 24)
    assert torch.equal(longer, found) != model.stateful, "one with a state would go on from more"


@each
def test_every_parameter_learns_and_one_window_is_as_in_a_batch(name, given):
    model = made(name, given).eval()
    batch = Batch(drawn(3, 16, WIDE), drawn(3, 8, WIDE, name="next"), 0)
    said = model(batch).mean
    assert said.shape == (3, 8, WIDE)
    (said - batch.targets).square().mean().backward()
    silent = [key for key, value in model.named_parameters() if value.grad is None
              or not value.grad.abs().max() > 0]  # fmt: skip
    assert silent == []
    alone = model(Batch(batch.inputs[1:2], batch.targets[1:2], 0)).mean
    close(alone, said[1:2], 1e-10)


@each
def test_what_only_warms_up_has_no_gradient_but_its_state_is_carried(name, given):
    model, inputs = made(name, given).eval(), drawn(2, 14, WIDE).requires_grad_()
    said = model(Batch(inputs, drawn(2, 6, WIDE, name="next"), 8)).mean
    (slope,) = torch.autograd.grad(said.sum(), inputs)
    kept = 8 - (model.span if name == "recurrent_transformer" else 0)  # a chunk further
    assert not slope[:, :kept].any() and slope[:, kept:].any()
    if model.stateful:
        close(said, model.run(inputs)[0][:, 8:], 1e-10)


def test_windows_of_one_chunk_learn_to_write_the_memory_that_they_read():
    model = made("recurrent_transformer", span=6).eval()
    batch = Batch(drawn(3, 18, WIDE), drawn(3, 6, WIDE, name="next"), 12)
    (model(batch).mean - batch.targets).square().mean().backward()
    silent = {key for key, value in model.named_parameters() if value.grad is None
              or not value.grad.abs().max() > 0}  # fmt: skip
    assert silent == {"first"}, "it is read two chunks before the window"


@pytest.mark.parametrize("name", names())
def test_a_saved_network_is_the_network(name, tmp_path):
    given = {**SMALL, "span": 4}
    torch.manual_seed(0)
    model = build(name, given, WIDE, SCALE).eval()
    told = {"model": name, "arm": "base", "size": "none", "seed": 0, "arguments": given,
            "observed": WIDE, "scale": SCALE}  # fmt: skip
    file = tmp_path / "weights.safetensors"
    file.write_bytes(store.dump(model, told))
    again, _ = store.load(str(file))
    values = drawn(2, 4, WIDE).float()
    torch.testing.assert_close(again.run(values)[0], model.run(values)[0], rtol=0, atol=0)


def test_what_says_a_change_moves_by_its_scale():
    model, values = made("gru", output="change").eval(), drawn(2, 3, WIDE)
    nn.init.zeros_(model.outward.weight)
    nn.init.ones_(model.outward.bias)
    close(model.run(values)[0], values + SCALE, 1e-12)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"width": 9, "heads": 2}, "width 9 is not a multiple of heads 2"),
        ({"gate": "leaky"}, "gate must be one of additive, rate, coupled, dependent"),
        ({"dropout": 1.0}, "dropout must be a number from 0 to below 1"),
        ({"deep": 3}, "deep is not an argument"),
    ],
)
def test_arguments_that_do_not_fit_are_named(given, told):
    with pytest.raises(InputError, match=told):
        build("lstm", given, WIDE, SCALE)


# --- attention


@pytest.mark.parametrize("bias", ["none", "distance", "content"])
def test_relative_biases_do_not_change_when_all_times_shift(bias):
    torch.manual_seed(1)
    attention = Attention(8, 8, 2, 5, bias).double()
    if bias == "distance":
        nn.init.normal_(attention.by_distance)
    if bias == "content":
        nn.init.normal_(attention.of_key), nn.init.normal_(attention.of_place)
    values, before = drawn(2, 9, 8), drawn(2, 4, 8, name="before")
    late = attention(torch.cat((before, values), 1), torch.cat((before, values), 1))
    close(late[:, 8:], attention(values, values)[:, 4:], 1e-10)


@pytest.mark.parametrize("bias", ["distance", "content"])
def test_attention_is_what_equations_33_and_34_say(bias):
    torch.manual_seed(1)
    attention, d = Attention(8, 8, 1, 6, bias).double(), 8
    for one in attention.parameters():
        nn.init.normal_(one)
    values = drawn(1, 6, 8)
    q, (k, v) = attention.query(values)[0], attention.pair(values)[0].chunk(2, -1)
    rows = []
    for i in range(6):
        logits = []
        for j in range(i + 1):
            if bias == "distance":
                logits.append(q[i] @ k[j] / d**0.5 + attention.by_distance[0, i - j])
            else:
                r, u, w = (
                    attention.vectors[0, i - j],
                    attention.of_key[0, 0],
                    attention.of_place[0, 0],
                )
                logits.append((q[i] @ k[j] + q[i] @ r + u @ k[j] + w @ r) / d**0.5)
        rows.append(torch.stack(logits).softmax(0) @ v[: i + 1])
    close(attention(values, values)[0], attention.outward(torch.stack(rows)), 1e-10)


# --- free runs that leave the attractor


def test_a_forecast_that_grows_without_bound_is_no_number_from_its_step_on():
    model = made("gru", output="change", layers=1).eval()
    nn.init.zeros_(model.outward.weight)
    nn.init.constant_(model.outward.bias, LIMIT / SCALE / 4)
    found = free_run(model, drawn(2, 3, WIDE), 8, 3)
    finite = torch.isfinite(found).all(2)
    assert finite[:, :3].all() and not finite[:, 5:].any()
