"""Document N's claims on numbers made for the purpose: which cells are compared, and when a claim
holds, fails or is undecided."""

import pytest

from stages.claims.paired import PairedEvaluation
from stages.fields.processes import claims
from stages.fields.processes.layout import PRIOR

LL = claims.LL


def number(value, half=0.01):
    return {"value": value, "low": value - half, "high": value + half, "n": 512, "unit": "nats"}


def measured(dataset, **reached):
    """An evaluation of cells by name (- as __), each with its likelihood, or that, its weights
    and, where they are told, its steps."""
    cells = {PRIOR: {"metrics": {"log_likelihood": number(-0.18)}}}
    for name, told in reached.items():
        value, weights, *steps = told if isinstance(told, tuple) else (told, 10_000)
        entry = {"metrics": {"log_likelihood": number(value)}, "weights": weights}
        if steps:
            entry["history"] = {"val": [[steps[0] // 2, 1.0], [steps[0], -value]]}
        cells[name.replace("__", "-")] = entry
    return PairedEvaluation(dataset, cells)


def seeds(name, *values):
    return {f"{name}__s{seed}": value for seed, value in enumerate(values)}


def test_variants_are_compared_in_the_largest_size_that_both_have():
    both = measured(
        "saw",
        tetnp__post__w64__s0=(1.2, 90_000), tetnp__post__w32__s0=(0.9, 18_000),
        tetnp__post__w16__s0=(0.4, 5_000), tetnp__rbf__w32__s0=(0.5, 17_000),
        tetnp__rbf__w16__s0=(0.1, 4_000),
    )  # fmt: skip
    found = [one.arm for one in claims.sides(both, LL, "tetnp-post", "tetnp-rbf")]
    assert found == ["tetnp-post-w32", "tetnp-rbf-w32"]
    assert claims.side(both, "tetnp-post", LL).arm == "tetnp-post-w64"


def test_without_a_common_size_each_stands_in_its_largest_and_what_was_not_trained_by_its_name():
    apart = measured("saw", tetnp__post__w64__s0=1.2, convcnp__plain__w32__s0=0.3)
    found = [
        one.arm for one in claims.sides(apart, LL, "tetnp-post", "convcnp-plain", "tnp-linear")
    ]
    assert found == ["tetnp-post-w64", "convcnp-plain-w32", "tnp-linear"]


@pytest.mark.parametrize(
    "plane, full, verdict",
    [
        ((0.5, 0.52, 0.51), (-0.17, -0.16, -0.175), "holds"),
        ((0.5, 0.52, 0.51), (0.4, 0.42, 0.41), "fails"),
        ((-0.17, -0.16, -0.175), (-0.17, -0.16, -0.175), "undecided"),
    ],
)
def test_a_convcnp_that_learned_neither_decides_nothing(plane, full, verdict):
    found = {
        name: measured(name, **seeds("convcnp__plain__w16", *values))
        for name, values in (("sawtooth_2d", plane), ("sawtooth_2d_full", full))
    }
    entry = claims.p6(found)
    assert entry["verdict"] == verdict
    assert ("untrained" in entry["why"]) == (verdict == "undecided")
    assert claims.p6({})["verdict"] == "undecided"


def test_functions_of_a_difference_are_ranked_over_their_seeds():
    arms = seeds("tetnp__post__w32", 0.9, 0.95, 0.92) | seeds("tetnp__rbf__w32", 0.5, 0.52, 0.55)
    arms |= seeds("tetnp__identity__w32", 0.1, 0.12, 0.15) | {"tetnp__post__w64__s0": 0.0}
    assert claims.p1({"sawtooth_1d": measured("sawtooth_1d", **arms)})["verdict"] == "holds"
    arms |= seeds("tetnp__identity__w32", 0.7, 0.72, 0.75)
    assert claims.p1({"sawtooth_1d": measured("sawtooth_1d", **arms)})["verdict"] == "fails"


@pytest.mark.parametrize(("steps", "verdict"), [(1800, "fails"), (1500, "undecided")])
def test_models_of_different_numbers_of_steps_are_not_compared(steps, verdict):
    arms = {f"tetnp__post__w32__s{seed}": (0.5 + 0.01 * seed, 9, 1800) for seed in range(3)}
    arms |= {f"pseudo_tnp__perceiver__w32__s{seed}": (0.2 + 0.01 * seed, 9, steps)
             for seed in range(3)}  # fmt: skip
    entry = claims.p7({"eq_1d": measured("eq_1d", **arms)})
    assert entry["verdict"] == verdict
    told = "steps: pseudo_tnp-perceiver-w32 has 1,500, tetnp-post-w32 has 1,800; measured"
    assert (told in entry["why"]) == (verdict == "undecided")


@pytest.mark.parametrize(("tnp", "verdict"), [(-0.18, "undecided"), (0.1, "holds")])
def test_a_rival_at_the_prior_is_not_beaten(tnp, verdict):
    def three(*values):
        names = ("tetnp__post__w32", "tnp__attention__w32", "convcnp__plain__w32")
        pairs = zip(names, values, strict=True)
        return {cell: at for name, value in pairs
                for cell, at in seeds(name, value, value + 0.01, value + 0.02).items()}  # fmt: skip

    found = {"sawtooth_1d": measured("sawtooth_1d", **three(0.5, tnp, 0.2)),
             "eq_1d": measured("eq_1d", **three(0.5, 0.5, 0.5))}  # fmt: skip
    entry = claims.p2(found)
    assert entry["verdict"] == verdict
    assert ("untrained: tnp-attention-w32" in entry["why"]) == (verdict == "undecided")


def test_few_teeth_are_judged_where_they_were_trained_on_and_linear_models_need_both_sets():
    arms = {"tetnp__post__w32": 0.9, "tnp__attention__w32": 0.4, "convcnp__plain__w32": 0.5}
    saws = {
        name: measured(name, **{cell: at for arm, value in arms.items()
                                for cell, at in seeds(arm, value + by, value + by + 0.01,
                                                      value + by + 0.02).items()})
        for name, by in (("sawtooth_1d_slow", 0.0), ("sawtooth_1d", -0.5))
    }  # fmt: skip
    assert claims.p2(saws)["dataset"] == "sawtooth_1d_slow"
    assert claims.p2({"sawtooth_1d": saws["sawtooth_1d"]})["dataset"] == "sawtooth_1d"
    both = claims.p7(saws)["compared"]
    assert {*both} == {"Gaussian process", "sawtooth"}, "no linear model was trained"


@pytest.mark.parametrize(
    ("tokens", "heads", "verdict"), [(0.3, 0.5, "holds"), (0.6, 0.5, "fails"), (0.3, 0.8, "fails")]
)
def test_what_half_of_the_tokens_heads_and_their_width_lose(tokens, heads, verdict):
    arms = {
        name: (value, 9, 6000)
        for size, at in zip(claims.HALVED, (tokens, heads, 0.7), strict=True)
        for name, value in seeds(f"tetnp__post__{size}", at, at + 0.01, at + 0.02).items()
    }
    found = {"sawtooth_1d": measured("sawtooth_1d", **arms)}
    assert claims.p9(found)["verdict"] == verdict
    assert "no trained tetnp-post-w32_h2_d8" in claims.p9({})["why"]
