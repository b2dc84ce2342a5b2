"""A comparison is decided only by models that have learned to read their context."""

import pytest

from stages.claims.levels import Side, ratio
from stages.claims.parts import Evaluation
from stages.claims.trained import Marks, decided

MARKS = Marks(("metrics", "mse"), ("metrics", "mse_permuted"), ("metrics", "r2"))


def number(value: float, half: float = 0.02) -> dict[str, float]:
    return {"value": value, "low": value * (1 - half), "high": value * (1 + half), "n": 300}


def cells(name: str, mse: float, shuffled: float, r2: float) -> dict[str, dict]:
    """Two seeds of an arm, one percent apart."""
    return {
        f"{name}-s{seed}": {
            "metrics": {
                "mse": number(mse * (1 + 0.01 * seed)),
                "mse_permuted": number(shuffled * (1 + 0.01 * seed)),
                "r2": number(r2),
            }
        }
        for seed in (0, 1)
    }


def judged(mine: dict, other: dict, more: dict | None = None) -> dict:
    measured = Evaluation("poisson", {**mine, **other, **(more or {})})
    left, right = (next(iter(one)).rpartition("-s")[0] for one in (mine, other))
    sides = Side(right, MARKS.error), Side(left, MARKS.error)
    part = ratio(measured, "claim", *sides, 1.0, True)
    assert part.verdict == "holds"  # the numbers alone
    found = decided(part, measured, [left, right], MARKS)
    return {"verdict": found.verdict, "why": found.why, "numbers": found.numbers}


TFS = cells("tfs-shared-20k", 0.2, 0.9, 0.8)


def test_models_that_read_their_context_decide():
    assert judged(cells("msa-shared-20k", 0.1, 0.9, 0.9), TFS)["verdict"] == "holds"


@pytest.mark.parametrize(
    ("mine", "told"),
    [
        (cells("msa-shared-20k", 0.1, 0.1005, 0.9), "errs alike when its context is shuffled"),
        (
            cells("msa-shared-20k", 0.1, 0.9, 0.0),
            "msa-shared-20k is not surely better than the mean",
        ),
    ],
)
def test_what_has_not_learned_decides_nothing(mine, told):
    found = judged(mine, TFS)
    assert found["verdict"] == found["numbers"]["verdict"] == "undecided"
    assert "claim: untrained: " in found["why"] and told in found["why"]
    assert "ratio of MSE" in found["why"] and found["numbers"]["interval"]  # still told


def test_models_are_compared_only_beyond_the_plainest():
    plain = cells("cnp-shared-20k", 0.201, 0.9, 0.8)
    found = judged(cells("msa-shared-20k", 0.1, 0.9, 0.9), TFS, plain)
    assert found["verdict"] == "undecided"
    assert "tfs-shared-20k is not surely better than cnp-shared-20k" in found["why"]
    better = cells("cnp-shared-20k", 0.4, 0.9, 0.6)
    assert judged(cells("msa-shared-20k", 0.1, 0.9, 0.9), TFS, better)["verdict"] == "holds"


def test_arms_of_one_model_need_not_beat_another():
    plain = cells("cnp-shared-20k", 0.1, 0.9, 0.9)
    other = cells("msa-traditional-20k", 0.2, 0.9, 0.8)
    assert judged(cells("msa-shared-20k", 0.15, 0.9, 0.85), other, plain)["verdict"] == "holds"


def test_what_is_not_trained_is_not_asked():
    fixed = {"kernel": cells("kernel", 0.1, 0.1, 0.0)["kernel-s0"]}
    measured = Evaluation("winds", fixed)
    part = ratio(
        measured, "claim", Side("kernel", MARKS.shuffled), Side("kernel", MARKS.error), 0.5, True
    )
    assert decided(part, measured, ["kernel"], MARKS) is part
