"""Claims about cells of several data sets: each arm keeps the spread of training of its own set; a
model that has not learned what it is compared for decides none."""

import pytest
from known_spreads import content

from stages.claims.levels import Side, level
from stages.claims.paired import PairedEvaluation
from stages.fields.grids import claims
from stages.fields.grids.layout import EXACT_OFF, EXACT_ON, PRIOR
from stages.spreads import Spreads

CELL = "grid_tnp-mhca-line-s0"


def test_arms_of_several_sets_in_one_have_the_spread_of_their_own_set():
    sizes, rows = {"dual_80": 0.1, "dual_50": 0.3}, content(("grid_tnp",), 9.0)["seeds"]
    for dataset, size in sizes.items():
        rows |= content((f"grid_tnp-mhca on {dataset}",), size)["seeds"]
    known, number = Spreads({"seeds": rows}), {"value": -0.5, "low": -0.6, "high": -0.4, "n": 9}
    cells = {CELL: {"metrics": {"log_likelihood": number}}, "prior": {"metrics": {}}}
    found = {name: PairedEvaluation(name, cells, known) for name in (*sizes, "globe")}
    dual = claims.together(found, known)
    for dataset, size in sizes.items():
        arm = f"grid_tnp-mhca@{dataset}-line"
        assert dual.spread_kind(f"{arm}-s0") == f"grid_tnp-mhca on {dataset}"
        told = level(dual, Side(arm, ("metrics", "log_likelihood")), logarithm=False)
        assert told.spread == pytest.approx(size**2)
        assert dual.spread_kind(f"prior@{dataset}") == ""
    assert len(dual.cells) == 4  # of the globe none


def measured(dataset, **reached):
    """An evaluation of cells by name (- as __), three seeds of each trained one: its likelihood and
    its error, the likelihood's negative."""
    cells = {}
    for name, value in reached.items():
        for seed in range(3) if "__" in name else ("",):
            moved = value + 0.002 * seed if "__" in name else value
            numbers = {"log_likelihood": moved, "rmse": -moved, "land_over_sea": 1.5 + moved / 100}
            told = {key: {"value": one, "low": one - 0.01, "high": one + 0.01, "n": 9}
                    for key, one in numbers.items()}  # fmt: skip
            cells[name.replace("__", "-") + (f"-s{seed}" if "__" in name else "")] = {
                "metrics": told
            }
    return PairedEvaluation(dataset, cells)


@pytest.mark.parametrize(("plain", "verdict"), [(-0.96, "undecided"), (-0.45, "holds")])
def test_a_reference_that_the_law_of_one_source_beats_has_not_joined_both(plain, verdict):
    laws = {EXACT_OFF: -0.5, EXACT_ON: -0.96, PRIOR: -1.42}
    encoders = {f"grid_tnp__{one}__line": -0.4 for one in ("mhca", "setconv")}
    dual = measured("dual_80", **laws, **encoders, grid_tnp__plain__line=plain)
    entry = claims.e2({"dual_80": dual})
    assert entry["verdict"] == verdict
    told = "untrained: grid_tnp-plain-line reaches -0.958 nats, exact_off, which reads one source"
    assert (told in entry["why"]) == (verdict == "undecided")


def test_latent_tokens_that_err_more_than_linear_interpolation_decide_nothing():
    known = {
        PRIOR: -16.0,
        "linear_interpolation__plain__globe": -5.0,
        "grid_tnp__mhca__globe": -4.0,
    }
    globe = measured("globe", **known, grid_tnp__lbanp__globe=-15.7)
    entry = claims.e9({"globe": globe})
    assert entry["verdict"] == "undecided" and "untrained: grid_tnp-lbanp-globe" in entry["why"]
    globe = measured("globe", **known, grid_tnp__lbanp__globe=-4.8)
    assert claims.e9({"globe": globe})["verdict"] == "holds"


def test_the_printed_setconv_stands_for_the_documents_where_it_was_trained():
    """Ours is good enough, the plain sum is not: once that is trained, it decides."""
    encoders = {"grid_tnp__plain__line": -0.45}
    encoders |= {f"grid_tnp__{one}__line": -0.4 for one in ("mhca", "setconv")}
    bars = {EXACT_OFF: -0.5, EXACT_ON: -0.96, PRIOR: -1.42}
    entry = claims.e2({"dual_80": measured("dual_80", **bars, **encoders)})
    assert entry["verdict"] == "holds" and "plain sum;" in entry["why"]
    encoders["grid_tnp__setconv_sum__line"] = -0.8
    entry = claims.e2({"dual_80": measured("dual_80", **bars, **encoders)})
    assert entry["verdict"] == "fails" and "SetConv adds the plain sum" in entry["why"]


@pytest.mark.parametrize(
    ("full", "verdict"), [(180.0, "undecided"), (300.0, "holds"), (90.0, "fails")]
)
def test_steps_a_second_are_judged_by_the_slowest_and_the_fastest_that_were_timed(full, verdict):
    """Against 80; of 180 the slowest step gives 60, the fastest 120."""
    small = {"ours_cpu_s": [0.5, 0.25], "full_cpu_s": 5.0}
    whole = {"ours_cpu_s": [2.0, 1.5, 3.0], "full_cpu_s": full}
    times = {"machine": {"cpu": "a processor"}, "rows": {"120": whole, "40": small}}
    entry = claims.e8(times)
    assert entry["verdict"] == verdict
    assert entry["interval"] == [full / 3.0, full / 1.5] and "a processor" in entry["why"]
    (part,) = entry["compared"].values()
    assert part["value"] == full / 2.0 and part["bar"] == 80
    assert "on 40 x 80 cells 13.3 (10 to 20 by" in entry["why"]


@pytest.mark.parametrize("rows", [{}, {"40": {"ours_cpu_s": [0.1], "full_cpu_s": 90.0}}])
def test_a_smaller_grid_decides_nothing_about_the_documents(rows):
    entry = claims.e8({"rows": rows})
    assert entry["verdict"] == "undecided" and entry["interval"] is None
    assert "on 120 x 240 201 times the multiplications, not timed" in entry["why"]
    assert ("on 40 x 80 cells 900" in entry["why"]) == bool(rows)


def test_a_pair_is_compared_in_a_size_that_both_have():
    """Of encoders in two sizes the one that the other was trained in; that of no pair stays the
    first."""
    sizes = {"mhca": ("line", "line_16"), "plain": ("line",), "mhca_off": ("line_16",)}
    known = {f"grid_tnp__{arm}__{size}": -0.5 for arm, some in sizes.items() for size in some}
    dual = measured("dual_80", **known)
    for one, other, size in (("mhca", "plain", "line"), ("mhca", "mhca_off", "line_16")):
        for a, b in ((one, other), (other, one)):
            found = claims.side(dual, f"grid_tnp-{a}", beside=f"grid_tnp-{b}").arm
            assert found == f"grid_tnp-{a}-{size}"
    assert claims.side(dual, "grid_tnp-mhca", beside="grid_tnp-lbanp").arm == "grid_tnp-mhca-line"
    assert claims.side(dual, "grid_tnp-lbanp").arm == "grid_tnp-lbanp"


def test_the_published_index_is_judged_by_what_it_costs_and_by_its_own_order():
    """Errors: 0.1 more of MHCA and 0.2 of SetConv with it; points alone err less than both."""
    reached = {"mhca": -1.0, "setconv": -1.0, "mhca_published": -1.1, "setconv_published": -1.2}
    reached |= {"mhca_off_published": -1.05, "mhca_on_published": -1.5}
    known = {f"grid_tnp__{arm}__britain": value for arm, value in reached.items()}
    entry = claims.with_index({"britain": measured("britain", **known)})
    found = {name: one["verdict"] for name, one in entry["compared"].items()}
    one = "britain: grid_tnp-{}-britain better than grid_tnp-{}-britain"
    assert found == {
        one.format("mhca", "mhca_published"): "holds",
        one.format("setconv", "setconv_published"): "holds",
        one.format("mhca_published", "setconv_published"): "holds",
        one.format("mhca_published", "mhca_off_published"): "fails",
        one.format("mhca_published", "mhca_on_published"): "holds",
    }
    assert entry["verdict"] == "fails"
