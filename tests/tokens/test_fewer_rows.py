"""Sets of one origin of which fewer rows train: who is compared with whom, and the figures of it
(thesis figures 2.2b and 2.4)."""

import pytest

from stages.tables.gather import over_seeds
from stages.tokens import figures, page, tables

SHAPES = {"task": "value", "made": {"task": "shapes", "rows": 9500, "seed": 0}}
TEXT = {"task": "label", "text": {"form": "sst2", "pieces": 8000}}
ERRORS = {
    ("shapes", 400): {"hypermixing-tied": (0.10, 0.17), "mlp_mixer-post_norm": (0.17, 1.1),
                      "unmixed-post_norm": (2.3,)},
    ("shapes_quarter", 100): {"hypermixing-tied": (0.24, 0.31), "mlp_mixer-post_norm": (4.4,)},
    ("others", 900): {"hypermixing-tied": (0.1,)},
}  # fmt: skip


@pytest.fixture
def content() -> dict:
    """Sets of shapes, two of them the same but for the rows; a text alone."""
    cells, about = {}, {}
    for (name, rows), arms in ERRORS.items():
        made = SHAPES["made"] | ({"seed": 1} if name == "others" else {})
        about[name] = SHAPES | {"made": made, "rows": {"train": rows}}
        for arm, values in arms.items():
            for seed, value in enumerate(values):
                one = {"value": value, "n": 9, "unit": "1"}
                cells[f"{name}/{arm}-w24-s{seed}"] = {"metrics": {"mse": one}}
        cells[f"{name}/mean"] = {"metrics": {"mse": {"value": 29.0, "n": 9, "unit": "1"}}}
    about["sst2"] = TEXT | {"rows": {"train": 60000}}
    return {"cells": cells, "arms": over_seeds(cells), "about": about}


def test_sets_that_differ_by_what_trains_alone_are_told_together(content):
    assert tables.shares(content) == {"shapes": ["shapes_quarter", "shapes"]}
    assert tables.amounts(content, "shapes") == {
        "hypermixing-tied-w24": {100: [0.24, 0.31], 400: [0.10, 0.17]},
        "mlp_mixer-post_norm-w24": {100: [4.4], 400: [0.17, 1.1]},
        "unmixed-post_norm-w24": {400: [2.3]},
    }, "what was not trained has no rows"
    content["arms"] = {name: one for name, one in content["arms"].items() if "quarter" not in name}
    assert tables.amounts(content, "shapes") == {}, "one amount is no curve"


def test_a_curve_has_a_mark_for_each_seed_and_a_line_through_their_means(content):
    panel = figures.by_rows(tables.amounts(content, "shapes"), "value").axes[0]
    lines = [one.get_xydata().tolist() for one in panel.get_lines()]
    assert lines[0] == [[100, pytest.approx(0.275)], [400, pytest.approx(0.135)]]
    assert lines[1] == [[100, 0.24], [100, 0.31], [400, 0.10], [400, 0.17]]
    assert len(lines) == 6 and panel.get_xlabel() == "rows that train"


def test_the_page_has_the_curve_where_it_was_drawn(content, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert page.fewer("token_mixing", "mini", content) == ()
    folder = tmp_path / "reports/token_mixing/mini/figures"
    folder.mkdir(parents=True)
    curves = tables.amounts(content, "shapes")
    figures.save(figures.by_rows(curves, "value"), folder / "shapes-rows.png")
    (section,) = page.fewer("token_mixing", "mini", content)
    assert section.blocks and "shapes" in section.title
