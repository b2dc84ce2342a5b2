"""Claims about cells of several data sets: each arm keeps the spread of training of its own set."""

import pytest
from known_spreads import content

from stages.claims.levels import Side, level
from stages.claims.paired import PairedEvaluation
from stages.fields.grids import claims
from stages.spreads import Spreads

CELL = "grid_tnp-mhca-line-s0"


def test_arms_of_several_sets_in_one_have_the_spread_of_their_own_set():
    sizes, rows = {"dual_80": 0.1, "dual_50": 0.3}, content(("grid_tnp",), 9.0)["rounding"]
    for dataset, size in sizes.items():
        rows |= content((f"grid_tnp-mhca on {dataset}",), size)["rounding"]
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
