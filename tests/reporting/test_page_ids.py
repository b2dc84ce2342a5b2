"""Three experiments on one page: every id once, every link lands."""

from pathlib import Path

import results_project
import search_project
import stage_runs
from page_reader import read
from results_project import PROFILE
from search_project import EXPERIMENT

from stages.neighbours.experiment import page, tabulate


def test_three_experiments_on_one_page_have_no_id_twice(tmp_path, monkeypatch):
    import baselines_project

    from stages.winds import figures
    from stages.winds import page as winds_page
    from stages.winds import tabulate as winds_tabulate

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(figures, "draw", results_project.plain_figures)
    results_project.build(tmp_path)
    baselines_project.build(tmp_path)
    search_project.build(tmp_path)
    for experiment in ("wind_nowcast", "wind_baselines"):
        stage_runs.tabulate(winds_tabulate, experiment, PROFILE)
        stage_runs.write_page(winds_page, experiment, PROFILE)
    stage_runs.tabulate(tabulate, EXPERIMENT, PROFILE)
    stage_runs.write_pages(page, EXPERIMENT, PROFILE)
    Path("README.md").write_text('<h2 id="check">Check</h2>')
    seen = read()
    assert seen.problems == [] and len(seen.ids) == len(set(seen.ids))
    links = {value.removeprefix("#") for tag, name, value in seen.attributes if name == "href"}
    shown = [f"{name}-{PROFILE}" for name in ("wind_nowcast", "wind_baselines", EXPERIMENT)]
    here = {link for link in links if "." not in link}
    assert {*shown, "ledger", "claims", "validation", "audit"} <= here <= set(seen.ids)
    for link in links - here:
        file, _, target = link.partition("#")
        assert not target or target in read(file).ids, link
    assert len(seen.tables) == len(
        [value for tag, name, value in seen.attributes if name == "role" and value == "region"]
    )  # no label twice
