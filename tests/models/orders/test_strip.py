"""A memory along the order: what any steps of any rows read, by machine code and by torch,
against the training forward and the definition."""

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import kstest

from stages import seeds
from stages.layers.kernels import LANES, attention_code, machine_code, strip_code
from stages.layers.kernels.strip import compiled, padded
from stages.layers.kernels.strip_code import settle, spans
from stages.sequences import permutations
from stages.sequences.models import build
from stages.sequences.sampling import gumbel
from stages.sequences.sampling.strip import Strip

LENGTH, VOCABULARY, ROWS = 37, 5, 4
SIZES = {"width": 24, "hidden": 20, "heads": 3, "blocks": 3}
dtypes = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["compiled", "torch"])


@pytest.fixture(autouse=True)
def inference():
    with torch.inference_mode():
        yield


def generator(*names):
    return seeds.torch_stream(0, "strip", *names)


def made(dtype, keys=6, arm=None):
    seeds.everything(2)
    model = build(
        "sigma_gpt", {"dropout": 0.0} | (arm or {}), SIZES | {"keys": keys}, VOCABULARY, LENGTH
    ).eval()
    for parameter in model.parameters():
        parameter.add_(0.2 * torch.randn(parameter.shape))
    return model.to(dtype)


def some(name="some"):
    draws = generator(name)
    order = permutations.random(ROWS, LENGTH, draws)
    tokens = torch.randint(VOCABULARY, (ROWS, LENGTH), generator=draws)
    along = torch.cat((torch.zeros(ROWS, 1, dtype=torch.int64), tokens.gather(1, order)), 1).numpy()
    return tokens, order, along


def steps_of(*ends):
    """The steps of passes that end at these places (R,), one after the other."""
    ends = [np.asarray(end) for end in ends]
    return [
        spans(begin, end, LENGTH)
        for begin, end in zip([np.zeros(ROWS, np.int64), *ends], ends, strict=False)
    ]


@dtypes
@pytest.mark.parametrize(
    "arm", [None, {"style": "text", "positions": "learned"}], ids=["plain", "text"]
)
@pytest.mark.parametrize(
    "keys", [3, 8, 17]
)  # narrower than the values' 8 columns, alike, wider and no whole four
def test_passes_of_any_steps_answer_as_the_training_forward(dtype, arm, keys):
    model, (tokens, order, along) = made(dtype, keys, arm), some()
    expected = model(tokens, order)
    strip = Strip(model, order, along)
    for steps in steps_of([5, 0, 1, 17], [5, 3, 2, 20], [37, 4, 30, 21], [37, 37, 37, 37]):
        torch.testing.assert_close(
            strip.ask(steps), expected[steps[0], steps[1]], rtol=1e-4, atol=1e-5
        )


@dtypes
def test_what_a_pass_read_wrongly_is_written_over_before_anything_reads_it(dtype):
    model, (tokens, order, along) = made(dtype), some()
    expected = model(tokens, order)
    strip = Strip(model, order, along)
    whole = spans(np.zeros(ROWS, np.int64), np.full(ROWS, LENGTH), LENGTH)
    right = along.copy()
    along[:, 6:] = (along[:, 6:] + 1) % VOCABULARY
    wrong = strip.ask(whole)
    assert (wrong - expected.flatten(0, 1)).abs().max() > 0.1
    along[:] = right
    later = spans(np.full(ROWS, 6), np.full(ROWS, 9), LENGTH)
    torch.testing.assert_close(
        strip.ask(later), expected[:, 6:9].flatten(0, 1), rtol=1e-4, atol=1e-5
    )


@dtypes
def test_skipped_steps_are_read_and_not_answered(dtype):
    model, (_, order, along) = made(dtype), some()
    prompt, rest = steps_of([9, 2, 0, 5], [12, 7, 4, 6])
    both, alone = Strip(model, order, along), Strip(model, order, along)
    alone.ask(prompt)
    torch.testing.assert_close(
        both.ask(np.concatenate((prompt, rest), 1), prompt.shape[1]), alone.ask(rest)
    )


def test_a_rows_answer_does_not_depend_on_who_else_is_asked():
    model, (_, order, along) = made(torch.float32), some()
    whole = spans(np.zeros(ROWS, np.int64), np.full(ROWS, LENGTH), LENGTH)
    together = Strip(model, order, along).ask(whole).view(ROWS, LENGTH, -1)
    row = spans(np.zeros(1, np.int64), np.full(1, LENGTH), LENGTH)
    torch.testing.assert_close(Strip(model, order[2:3], along[2:3]).ask(row), together[2])


@pytest.mark.parametrize("scale", [1e-3, 1.0, 50.0, 1e4])
@pytest.mark.parametrize("lanes", [1, 6, 16])
def test_both_attentions_are_the_definition_whatever_the_scores(lanes, scale):
    heads, length, draws = 3, 70, generator("definition", str(scale), str(lanes))
    deep, long = -(-lanes // 4) * 4, -(-length // LANES) * LANES
    steps = np.concatenate(
        [spans(np.zeros(2, np.int64), np.array([length, 33]), length)[:, ::-1]], 1
    ).copy()  # any order of steps
    parts = torch.randn(steps.shape[1], 3, heads, lanes, generator=draws)
    parts[:, 0] *= scale
    expected = torch.empty(len(parts), heads, lanes, dtype=torch.float64)
    for n, (row, place, _) in enumerate(steps.T):
        seen = parts[torch.from_numpy((steps[0] == row) & (steps[1] <= place))].double()
        expected[n] = torch.einsum(
            "sh,shl->hl",
            torch.einsum("hl,shl->sh", parts[n, 0].double() * 0.3, seen[:, 1]).softmax(0),
            seen[:, 2],
        )
    # Rounding moves a score by a part in 1.7e7 of its terms, and a weight by as much as its score.
    near = min(2e-7 * max(1.0, 0.3 * scale * lanes), 1e-3)
    for attention in (compiled, padded):
        memory = [torch.zeros(2, heads, 2, deep, long)]
        answer = attention(memory, 0.3)(steps)(0, parts).double()
        torch.testing.assert_close(answer, expected, rtol=1e-3, atol=near)


@dtypes
def test_a_step_reads_nothing_of_later_places_whatever_lies_there(dtype):
    model, (_, order, along) = made(dtype), some()
    clean, spoilt = Strip(model, order, along), Strip(model, order, along)
    for memory in spoilt.memory:
        memory[..., 9:] = 1e30
    (steps,) = steps_of([9, 9, 4, 1])
    assert torch.equal(spoilt.ask(steps), clean.ask(steps))


def test_what_is_no_number_shows_in_all_that_reads_it_and_in_no_other_row():
    model, (_, order, along) = made(torch.float32), some()
    strip = Strip(model, order, along)
    strip.places.view(ROWS, LENGTH, -1)[1, 3] = torch.nan
    found = strip.ask(spans(np.zeros(ROWS, np.int64), np.full(ROWS, LENGTH), LENGTH)).view(
        ROWS, LENGTH, -1
    )
    assert found[1, 3:].isnan().all() and not found[[0, 2, 3]].isnan().any()


def test_spans_are_all_steps_row_by_row():
    assert spans(np.array([0, 5, 3]), np.array([2, 5, 4]), 10).tolist() == [
        [0, 0, 2],
        [0, 1, 3],
        [0, 1, 23],
    ]
    assert spans(np.array([4]), np.array([1]), 10).shape == (3, 0)


def test_a_pass_settles_up_to_and_with_the_first_that_is_not_its_draft():
    along = np.array([[0, 1, 1, 1, 1], [0, 2, 2, 2, 2], [0, 3, 3, 3, 3]])
    known = np.array([0, 1, 4])
    when, passes, positions = np.zeros((3, 4), np.int64), np.array([0, 4, 1]), np.array([0, 9, 4])
    truth = np.array([1, 7, 1, 2, 2, 5])
    steps = settle(
        truth,
        spans(np.array([0, 1, 4]), np.array([3, 4, 4]), 4),
        along,
        known,
        when,
        passes,
        positions,
        2,
    )
    assert (
        known.tolist() == [2, 4, 4]
        and passes.tolist() == [1, 5, 1]
        and positions.tolist() == [3, 12, 4]
    )
    assert along.tolist() == [[0, 1, 7, 1, 1], [0, 2, 2, 2, 5], [0, 3, 3, 3, 3]]
    assert when.tolist() == [[1, 1, 0, 0], [0, 5, 5, 5], [0, 0, 0, 0]] and steps.tolist() == [
        [0, 0],
        [2, 3],
        [2, 3],
    ]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gumbel_noise_has_its_law_far_into_the_tails(dtype):
    noise = gumbel((400_000,), generator("gumbel", str(dtype)), dtype)
    assert noise.dtype == dtype and kstest(noise.double().numpy(), "gumbel_r").pvalue > 1e-3
    assert noise.max() > 10 and len(noise.unique()) > (
        0.9 if dtype == torch.float32 else 0.999
    ) * len(noise)


def test_machine_code_is_kept_by_the_name_of_all_that_goes_into_it(monkeypatch):
    """An edit of the file whose functions are inlined must not leave the old machine code in
    use."""
    source, stamps = machine_code.inspect.getsource(attention_code), []
    for text in (source, source + "# another word\n"):
        with monkeypatch.context() as patch:
            patch.setattr(machine_code.inspect, "getsource", lambda _, text=text: text)
            stamps.append(machine_code.stamp(attention_code))
    assert machine_code.stamp(attention_code) == stamps[0] != stamps[1]
    folder = Path(strip_code.__file__).parent
    names = [file.name for file in folder.glob("__pycache__/strip_code.read-*.nbi")]
    assert any(stamps[0] in name for name in names) or not os.access(folder, os.W_OK)
