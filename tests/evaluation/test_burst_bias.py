"""The bias of Algorithm 3 as printed: laws as readers against brute force, the floor and
chi-square against closed forms and simulation."""

import json
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats

from stages import seeds
from stages.errors import DataError
from stages.sequences.evaluation import bias
from stages.sequences.sampling import Reader, opened

sys.path.insert(0, str(Path(__file__).parents[1] / "models/orders"))
import toy_laws

LAWS = bias.laws()


@pytest.fixture(autouse=True)
def one_thread():
    """The tables are too small for more threads."""
    torch.set_num_threads(1)


def blank(rows, law):
    return torch.zeros(rows, law.length, dtype=torch.int64)


@pytest.mark.parametrize("name", LAWS)
def test_a_reader_answers_what_summing_over_the_sequences_gives_after_every_possible_context(name):
    law = LAWS[name]
    chances = dict(zip(map(tuple, law.sequences.tolist()), law.chances.tolist(), strict=True))
    for known in product((False, True), repeat=law.length):
        for sequence in chances:
            agree = {
                other: chance
                for other, chance in chances.items()
                if all(a == b for a, b, k in zip(other, sequence, known, strict=True) if k)
            }
            order = torch.tensor([sorted(range(law.length), key=lambda t: not known[t])])
            reader = opened(law, torch.tensor([sequence]), order, torch.tensor([sum(known)]))
            assert isinstance(reader, Reader)
            asked = [t for t in range(law.length) if not known[t]]
            if not asked:
                continue
            found = reader.ask(torch.tensor([asked]))[0][0].softmax(1)
            for place, row in zip(asked, found, strict=True):
                by_hand = [
                    sum(chance for other, chance in agree.items() if other[place] == v)
                    / sum(agree.values())
                    for v in range(law.vocabulary)
                ]
                torch.testing.assert_close(
                    row.double(), torch.tensor(by_hand, dtype=torch.float64), atol=1e-6, rtol=1e-5
                )


def test_along_chains_it_answers_as_the_other_reader_until_the_first_impossible_draft():
    law, draws = LAWS["step"], seeds.torch_stream(0, "chains")
    other = toy_laws.Table(law.sequences, law.chances, 2)
    orders = torch.rand(50, 3, 5, generator=draws).argsort(2)
    drafts = law.sequences[torch.randint(0, 4, (50, 3), generator=draws)].gather(2, orders)
    drafts[:25] = torch.randint(0, 2, (25, 3, 5), generator=draws)
    first = torch.zeros(50, dtype=torch.int64)
    ours, theirs = (one.open(blank(50, law), orders[:, 0], first) for one in (law, other))
    found, expected = (
        reader.ask(orders=orders, drafts=drafts)[1].softmax(3).double() for reader in (ours, theirs)
    )
    taken = expected.gather(3, drafts[..., None])[..., 0] > 1e-9
    alive = (
        torch.cat((torch.ones(50, 3, 1, dtype=torch.bool), taken[..., :-1]), 2).cumprod(2).bool()
    )
    assert alive.sum() > 500 and not alive.all()
    torch.testing.assert_close(found[alive], expected[alive], atol=1e-6, rtol=1e-5)
    choice, count = torch.zeros(25, dtype=torch.int64), torch.full((25,), 2)
    kept = torch.arange(25, 50)
    for reader in (ours, theirs):
        reader.retain(kept)
        reader.ask(orders=orders[kept], drafts=drafts[kept])
        reader.keep(choice, count, drafts[kept, 0])
    rest = orders[kept, 0, 2:]
    torch.testing.assert_close(
        ours.ask(rest)[0].softmax(2).double(),
        theirs.ask(rest)[0].softmax(2).double(),
        atol=1e-6,
        rtol=1e-5,
    )


def test_the_correlated_law_is_the_one_of_the_samplers_tests():
    theirs = toy_laws.correlated(4, 2, 0)
    assert torch.equal(LAWS["correlated"].sequences, theirs.sequences)
    torch.testing.assert_close(LAWS["correlated"].chances, theirs.probabilities)


def test_the_floor_is_what_independent_draws_show():
    chances = LAWS["correlated"].chances.numpy()
    found = bias.floor(chances, 500, seeds.stream(0, "floor"))
    seen = (
        np.abs(seeds.stream(1, "floor").multinomial(500, chances, size=20_000) / 500 - chances).sum(
            1
        )
        / 2
    )
    assert found["mean"] == pytest.approx(seen.mean(), abs=4 * seen.std() / 20_000**0.5)
    assert (seen < found["high"]).mean() == pytest.approx(0.95, abs=0.03)


def test_chi_square_is_scipys_and_its_p_is_uniform_under_the_law_even_with_rare_classes():
    counts, chances = np.array([30.0, 50, 20]), np.array([0.25, 0.5, 0.25])
    found, theirs = bias.chi_square(counts, chances), stats.chisquare(counts, chances * 100)
    assert (found["chi_square"], found["p"], found["degrees"]) == (
        pytest.approx(theirs.statistic),
        pytest.approx(theirs.pvalue),
        2,
    )
    rare = np.array([0.4, 0.004, 0.3, 0.003, 0.293])  # of 1000 draws: 4 and 3 are put together
    pooled = bias.chi_square(np.array([400, 9, 300, 0, 291]), rare)
    assert pooled["degrees"] == 3 and pooled["chi_square"] == pytest.approx(
        stats.chisquare([9, 400, 300, 291], [7, 400, 300, 293]).statistic
    )
    drawn = seeds.stream(0, "chi").multinomial(1000, rare, size=2000)
    assert (
        stats.kstest([bias.chi_square(one, rare)["p"] for one in drawn], "uniform").statistic < 0.06
    )


def test_a_sequence_that_the_law_cannot_draw_is_refused():
    with pytest.raises(DataError, match="what the law cannot"):
        bias.judged(LAWS["step"], torch.ones(10, 5, dtype=torch.int64))


def test_one_law_is_bent_more_with_more_orders_another_not_and_exact_sampling_not_at_all():
    found = bias.bias_by_law(0, orders=(1, 20), draws=10_000)
    assert found == bias.bias_by_law(0, orders=(1, 20), draws=10_000) and json.dumps(
        found, allow_nan=False
    )
    bent, symmetric = found["correlated"], found["permutation"]
    one, many = (bent["burst"][count] for count in ("1", "20"))
    assert (
        4 * bent["floor"]["high"] < one["total_variation"] < many["total_variation"]
        and one["p"] < 1e-12
        and many["passes"] < one["passes"]
    )
    assert found["step"]["burst"]["20"]["total_variation"] > 2 * found["step"]["floor"]["high"]
    assert all(
        entry["p"] > 1e-3 and entry["total_variation"] < 2 * symmetric["floor"]["mean"]
        for entry in symmetric["burst"].values()
    )
    for entry in found.values():
        assert all(
            entry[name]["p"] > 1e-3 and entry[name]["total_variation"] < 2 * entry["floor"]["mean"]
            for name in ("exact", "sequential")
        )
    assert bent["sequential"]["passes"] == 4 and bent["exact"]["passes"] < 4
