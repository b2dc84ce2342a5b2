"""The errata are held to the project: every test they name exists, every figure is made, and
what rests on printed tables follows from them."""

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
