"""The errata are held to the project: every test they name exists, every figure is made, and
what rests on printed tables follows from them."""

import math
import re
from pathlib import Path

import polars as pl
import pytest

from stages.errors import DataError
from stages.page import claims as page_claims
from stages.tables import published

ROOT = Path(__file__).resolve().parents[2]
ERRATA = page_claims.errata()


@pytest.fixture
def printed(monkeypatch) -> pl.DataFrame:
    """The documents' tables as transcribed."""
    monkeypatch.chdir(ROOT)
    return published.read()


@pytest.mark.parametrize("evidence", sorted({one for row in ERRATA for one in row["shown_by"]}))
def test_what_an_erratum_names_is_there(evidence):
    path, _, name = evidence.partition("::")
    assert (ROOT / path).is_file()
    assert (
        path.endswith(".png")
        if not name
        else re.search(rf"(?m)^def {name}\(", (ROOT / path).read_text(encoding="utf-8"))
    )


def test_every_document_has_errata_and_none_stands_twice():
    assert {row["document"] for row in ERRATA} == set(page_claims.DOCUMENTS)
    assert len({(row["document"], row["where"]) for row in ERRATA}) == len(ERRATA) > 20


@pytest.mark.parametrize(
    "row", ["nobody,eq. 1,a,b,c,d,wind", "thesis,eq. 1,a,,c,d,wind", "thesis,eq. 1,a,b,c,d,water"]
)
def test_an_erratum_of_no_document_without_a_part_or_of_no_family_is_an_error_that_names_its_line(
    tmp_path, row
):
    file = tmp_path / "errata.csv"
    file.write_text(",".join(page_claims.COLUMNS) + "\n" + row + "\n")
    with pytest.raises(DataError, match="line 2"):
        page_claims.errata(file)
    file.write_text("where\nx\n")
    with pytest.raises(DataError, match="other columns"):
        page_claims.errata(file)


def means(printed: pl.DataFrame, *where: pl.Expr) -> list[float]:
    return printed.filter(*where)["mean"].to_list()


def test_table_3_2_prints_training_errors_of_cnp_and_gen_in_its_wind_column(printed):
    col = pl.col
    for model in ("cnp", "gen"):
        shown = means(
            printed,
            col("table") == "thesis 3.2",
            col("dataset").str.starts_with("wind"),
            col("model") == model,
        )
        trained = means(
            printed,
            col("table") == "thesis C.3",
            col("dataset").str.starts_with("wind"),
            col("model") == model,
        )
        held = means(
            printed,
            col("table") == "thesis C.2",
            col("dataset").str.starts_with("wind"),
            col("model") == model,
        )
        assert len(shown) == 3 and set(shown) <= set(trained) and not set(shown) <= set(held)


def test_table_3_4_prints_shared_over_not_shared(printed):
    col = pl.col
    (ratio,) = means(
        printed, col("table") == "thesis 3.4", col("dataset") == "poisson", col("model") == "msa"
    )

    def of(variant):
        return means(
            printed,
            col("table") == "thesis C.2",
            col("dataset") == "poisson",
            col("model") == "msa",
            col("variant").str.contains(variant),
            col("metric") == "mse",
        )

    shared, apart = of("shared"), of("default")
    assert len(shared) == len(apart) == 3
    assert ratio == pytest.approx(100 * sum(shared) / sum(apart), rel=0.05) and ratio < 100


def test_the_gating_study_has_seven_real_series(printed):
    rows = printed.filter(pl.col("table").is_in(["gating 6", "gating 7"]))
    assert len({*rows["dataset"]}) == 7


def test_table_a_3_prints_a_colon_for_a_point(printed):
    tnn = [pl.col("table") == "thesis A.3", pl.col("model") == "tnn",
           pl.col("variant") == "device=gpu", pl.col("dataset") == "tnn_random_points"]  # fmt: skip
    (query_ms,) = means(printed, *tnn, pl.col("metric") == "query_time")
    (whole_s,) = means(printed, *tnn, pl.col("metric") == "total_duration")
    assert query_ms == 1.36 and whole_s * 1000 / 1_000_000 == query_ms


def test_table_c_2_heads_squared_errors_of_darcy_as_roots(printed):
    """The default encodings of CNP and GEN, which both tables have, to the digits of 3.2."""
    for model in ("cnp", "gen"):
        one = [pl.col("dataset") == "darcy", pl.col("model") == model]
        shown = means(printed, pl.col("table") == "thesis 3.2", *one)
        told = means(printed, pl.col("table") == "thesis C.2", *one,
                     pl.col("variant") == "default_encoding")  # fmt: skip
        assert len(shown) == 3 and [math.sqrt(1e-4 * value) for value in told] == pytest.approx(
            shown, abs=1e-4
        )


def test_table_4_2_has_over_80_times_the_steps_on_the_coarsest_grid_alone(printed):
    table = printed.filter(pl.col("table") == "ongrid 4.2")
    (plain,) = means(table, pl.col("model") == "tnp", pl.col("variant").str.contains("120x240"))
    times = {
        grid: [round(value / plain) for value in means(
            table, pl.col("model") == "swin_tnp", pl.col("variant").str.ends_with(f"grid={grid}"))]
        for grid in ("20x40", "30x60", "60x120")
    }  # fmt: skip
    assert times.pop("20x40") == [85, 86] and times["30x60"] == [63, 78]
    assert max(one for several in times.values() for one in several) < 80


def test_table_4_3_prints_likelihoods_of_values_over_21_kelvin(printed):
    """Beside what one Gaussian of the printed error reaches at best: over 21.17 K the models gain
    less than a nat by telling hard places from easy ones, in kelvin it would be more than three."""
    table = printed.filter(pl.col("table") == "ongrid 4.3")
    table = table.filter(pl.col("model") != "linear_interpolation")
    nats, kelvin = (means(table, pl.col("metric") == name) for name in ("log_likelihood", "rmse"))
    assert len(nats) == len(kelvin) == 3
    for reached, error in zip(nats, kelvin, strict=True):
        gained = reached + math.log(error) + 0.5 * (1 + math.log(2 * math.pi))
        assert gained > 3 and 0 < gained - math.log(21.17) < 1


def test_the_slides_wind_table_has_the_thesis_roots(printed):
    found = means(printed, pl.col("table") == "slides wind")
    roots = means(printed, pl.col("table").is_in(["thesis 1.2", "thesis 3.2"]),
                  pl.col("dataset").str.starts_with("wind"),
                  pl.col("metric") == "rmse")  # fmt: skip
    assert len(found) == 4 and min(roots) > max(map(math.sqrt, found))
    assert min(roots) < max(found) and min(found) > 0.9 * min(roots)
