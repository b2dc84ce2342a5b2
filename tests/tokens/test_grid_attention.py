"""The network that draws on a grid: nothing of what comes, statements for every cell, places that
are rows and columns, words read together."""

import pytest
import torch
from torch import nn

from stages import seeds
from stages.errors import InputError
from stages.tokens.contract import Batch
from stages.tokens.models import build
from stages.tokens.parts.attending import SelfAttention
from stages.tokens.parts.grid import PART, LookBack, behind

SAID, ROWS, COLUMNS = 12, 3, 5
ASKED = SAID + ROWS * COLUMNS - 1
NEXT = {"task": "next", "vocabulary": 19, "outputs": 19, "longest": ASKED + 1}
SMALL = {"width": 32, "feed": 16, "heads": 2, "rows": ROWS, "columns": COLUMNS}
BARE = {"back": 1, "told": 0, "tally": 0}
ARMS = (BARE | {"placed": 0}, BARE, {"tally": 0}, {})


def made(**more):
    seeds.everything(0)
    model = build("grid_attention", SMALL | more, NEXT)
    if model.network.tally:  # nothing is added before the first step
        seeds.everything(1)
        nn.init.normal_(model.network.added)
    return model


def words(count=2):
    return torch.randint(1, 19, (count, ASKED), generator=seeds.torch_stream(0, "pictures"))


def said(model, inputs):
    real = torch.ones_like(inputs, dtype=torch.bool)
    return model(Batch(inputs, real, inputs, real)).values


@pytest.mark.parametrize("arm", ARMS)
@pytest.mark.parametrize("place", [0, 6, SAID, ASKED - 1])
def test_no_cell_hears_of_those_to_come_and_every_cell_of_the_statements(arm, place):
    model, inputs = made(**arm), words()
    changed = inputs.clone()
    changed[:, place] = 1 + changed[:, place] % 18
    one, other = said(model, inputs), said(model, changed)
    if place >= SAID - 1 or not arm.get("told", 1):
        torch.testing.assert_close(one[:, :place], other[:, :place])
    reached = max(place, SAID - 1)
    assert ((one - other)[:, reached:].abs().amax(2) > 1e-6).all()


@pytest.mark.parametrize("arm", ARMS)
def test_a_picture_is_drawn_token_by_token_as_it_is_judged_at_once(arm):
    model, inputs = made(**arm), words()
    whole = said(model, inputs)
    for count in range(SAID, ASKED + 1):
        found = said(model, inputs[:, :count])[:, -1]
        torch.testing.assert_close(found, whole[:, count - 1], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("arm", ARMS)
def test_every_weight_learns(arm):
    model = made(**arm)
    said(model, words(8)).square().sum().backward()
    silent = [key for key, one in model.named_parameters()
              if one.grad is None or not one.grad.abs().max() > 0]  # fmt: skip
    assert silent == []


def test_a_token_knows_the_row_and_the_column_of_the_cell_that_it_asks_for():
    drawing = made().network
    asked = drawing.asked()
    assert asked.shape == (ASKED, 32)
    for row in range(ROWS):
        for column in range(COLUMNS):
            down, across = row - 1, (column - 2) / 2  # from -1 to 1
            expected = (drawing.rows.weight[row] + down * drawing.ways[0]
                        + drawing.columns.weight[column] + across * drawing.ways[1])  # fmt: skip
            found = asked[SAID - 1 + row * COLUMNS + column]
            torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-6)


def test_what_is_told_is_the_sum_of_what_was_read_of_each_words_last_four():
    seen = []
    drawing, inputs = made(tally=0).network, words(1)
    drawing.layers[0].register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    drawing(inputs, torch.ones_like(inputs, dtype=torch.bool))
    bare = drawing.embedding(inputs)[0] + drawing.asked()
    padded = torch.cat((torch.zeros(3, 32), bare))
    heard = sum(drawing.read(padded[place : place + 4].flatten()) for place in range(SAID))
    torch.testing.assert_close(seen[0][0, : SAID - 1], bare[: SAID - 1])
    torch.testing.assert_close(
        seen[0][0, SAID - 1 :], bare[SAID - 1 :] + PART * heard, atol=1e-5, rtol=1e-5
    )


def test_a_tally_adds_what_each_token_is_and_where_it_stands():
    seen = {}
    drawing, inputs = made(told=0).network, words(1)
    drawing.layers[0].register_forward_pre_hook(lambda _, given: seen.update(tally=given[0][0]))
    drawing(inputs, torch.ones_like(inputs, dtype=torch.bool))
    tally = seen["tally"] - drawing.embedding(inputs)[0] - drawing.asked()
    is_, down, across = drawing.added
    expected = torch.zeros(32)
    assert (inputs == 13).any()
    for place, word in enumerate(inputs[0].tolist()):
        if word != 13:  # the ground
            expected = expected + is_[word]
        if place >= SAID and word != 13:
            row, column = divmod(place - SAID, COLUMNS)
            expected = expected + (row - 1) * down[word] + (column - 2) / 2 * across[word]
        torch.testing.assert_close(tally[place], expected, atol=1e-4, rtol=1e-4)


def test_without_a_look_back_it_is_the_frames_causal_attention_and_with_one_of_shared_tokens():
    seeds.everything(0)
    theirs, plain, back = SelfAttention(32, 2, True), LookBack(32, 2, 1), LookBack(32, 2, 3)
    tokens = torch.randn(2, 9, 32, generator=seeds.torch_stream(0, "tokens"))
    real = torch.ones(2, 9, dtype=torch.bool)
    for mixer in (plain, back):
        mixer.load_state_dict(theirs.state_dict(), strict=False)
    torch.testing.assert_close(plain(tokens, real), theirs(tokens, real), atol=1e-5, rtol=1e-5)
    far, near = (nn.functional.pad(tokens, (0, 0, gap, 0))[:, :9] for gap in (2, 1))
    shared = tokens + back.shares[0] * far + back.shares[1] * near
    torch.testing.assert_close(back(tokens, real), theirs(shared, real), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(behind(tokens, 3)[0], far)


@pytest.mark.parametrize(
    ("dimensions", "more", "words"),
    [
        (NEXT | {"task": "label"}, {}, "says the next token"),
        (NEXT, {"rows": 1}, "no picture behind a statement"),
        (NEXT, {"rows": 7}, "no picture behind a statement"),
        (NEXT, {"told": 2}, "told must be one of 0, 1"),
    ],
)
def test_what_is_no_picture_is_refused(dimensions, more, words):
    with pytest.raises(InputError, match=words):
        build("grid_attention", SMALL | more, dimensions)
