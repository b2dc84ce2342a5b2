"""The page: one well-formed file that needs nothing else, where every result stands beside what
it must be compared with."""

import re
from pathlib import Path

import pytest
import stage_runs
from page_made import OWN, make, results, theirs
from page_reader import Page, read, rows_of
from results_project import CELLS, EXPERIMENT, FLOOR, HOME, PROFILE

from stages import files
from stages.page import render, report
from stages.tables import parts
from stages.winds import page, tables

PARTS = ("", "_sort", "_contents", "_charts")
SCRIPTS = [Path(render.__file__).with_name(f"page{name}.js") for name in PARTS]
AGAINST, PRINTED = "vs hour_average", "printed RMSE [kn]"


@pytest.fixture(scope="module")
def front(seen) -> Page:
    """The front page of the same project."""
    return read()


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """The experiment's page of the hand-made project, which is the working folder."""
    with pytest.MonkeyPatch.context() as patch:
        yield make(tmp_path_factory.mktemp("page"), patch)


# --- one file, well-formed, for everyone


def test_every_tag_closes_in_order_and_ids_are_unique(seen, front):
    for one in (seen, front):
        assert one.problems == []
        assert len(one.ids) == len(set(one.ids)) >= 4
        assert one.tags.count("html") == one.tags.count("h1") == one.tags.count("title") == 1


def test_the_parser_of_these_tests_finds_what_is_wrong():
    assert (
        Page("<p><b>x</p></b>").problems
        and Page("<div>").problems
        and Page("<p id=a id=b></p>").problems
        and not Page("<p>a<br>b<img/></p>").problems
    )


def test_nothing_is_asked_of_the_network_and_small_scripts_of_the_pages_own_run(seen):
    assert not {
        "link",
        "iframe",
        "object",
        "embed",
        "base",
        "form",
        "audio",
        "video",
        "source",
    } & set(seen.tags)
    assert [a for a in seen.attributes if a[1].startswith("on")] == []
    named = ("src", "srcset", "action", "data", "poster", "xlink:href", "style")
    addresses = [(tag, name, value) for tag, name, value in seen.attributes if name in named]
    assert addresses and all(
        tag == "img" and re.fullmatch(r"figures/[\w-]+\.png", value) for tag, _, value in addresses
    )
    text = Path("reports", OWN).read_text()
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)[1]
    assert "url(" not in style and "@import" not in style
    (policy,) = (
        value
        for tag, name, value in seen.attributes
        if name == "content" and "default-src" in value
    )
    assert policy.startswith("default-src 'none'; img-src 'self' file:;") and "http" not in policy
    scripts = [one.read_text(encoding="utf-8").strip() for one in SCRIPTS]
    inside = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    assert [one.strip() for one in inside] == scripts
    assert seen.tags.count("script") == 1 + len(scripts)
    (name,) = re.findall(r"https?:[^\"]*", "".join(scripts))
    assert name == "http://www.w3.org/2000/svg"  # what SVG is called, asked of nobody
    asks = r"fetch\(|XMLHttpRequest|import\(|innerHTML|eval\(|Function\("
    assert not any(re.search(asks, one) for one in scripts)


def test_every_link_lands(seen, front):
    Path("CONTRIBUTING.md").touch()
    Path("README.md").write_text('<h2 id="check">Check</h2>')
    for one, home in ((seen, Path("reports", OWN).parent), (front, Path("reports"))):
        links = [value for tag, name, value in one.attributes if name == "href"]
        assert {"#results", "#claims", "#audit"} <= set(links)
        for link in set(links) - theirs():
            file, _, target = link.partition("#")
            assert not file or (home / file).is_file(), link
            if target:
                ids = Page((home / file).read_text(encoding="utf-8")).ids if file else one.ids
                assert target in ids, link
    assert "../../index.html" in [value for _, name, value in seen.attributes if name == "href"]
    shown = {value for tag, name, value in front.attributes if name == "href"}
    own = f"#{EXPERIMENT}-{PROFILE}"
    assert {own, f"{OWN}{own}-simulated", "#errata", "#validation", "#ledger"} <= shown


def test_a_second_run_writes_the_same_bytes(seen):
    paths = [Path("reports", name) for name in ("index.html", "README.md", OWN)]
    paths.append(HOME / "page.json")
    before = [path.read_bytes() for path in paths]
    stage_runs.write_pages(page, EXPERIMENT, PROFILE)
    assert [path.read_bytes() for path in paths] == before


def test_every_figure_is_linked_with_words_for_those_who_do_not_see_it(seen, front):
    stored = sorted(file.name for file in (HOME / "figures").glob("*.png"))
    assert sorted(figure["src"] for figure in seen.figures) == [f"figures/{n}" for n in stored]
    assert len(stored) == 5 * len(CELLS)
    opening = f"{EXPERIMENT}/{PROFILE}/figures/hour_winds-nowcast.png"
    assert [figure["src"] for figure in front.figures] == [opening]
    assert all(len(figure["alt"]) > 15 for figure in (*seen.figures, *front.figures))
    assert seen.tags.count("figcaption") == len(seen.figures)
    lang = [value for tag, name, value in seen.attributes if tag == "html" and name == "lang"]
    assert lang == ["en"]
    assert all(value for tag, name, value in seen.attributes if name == "aria-label")


# --- every result has its companions


def test_there_is_a_row_an_arm_and_each_has_all_three_companions(seen):
    arms = parts.read(HOME)["arms"]
    rows = [(dataset, row) for dataset in CELLS for row in results(seen, dataset)]
    assert sorted(f"{dataset}/{row['model']}" for dataset, row in rows) == sorted(arms)
    against = [re.fullmatch(r"[+-]\d+ %", row[AGAINST]) for _, row in rows]
    printed = [re.fullmatch(r"not published|\d+\.\d\d.* \(.+\)", row[PRINTED]) for _, row in rows]
    floors = [
        re.search(rf"Noise floor[^.]*: {FLOOR[dataset]:.2f} kn per component", section(dataset))
        for dataset, _ in rows
        if dataset in FLOOR
    ]
    assert all(against) and all(printed) and all(floors)
    assert (
        len(against) + len(printed) + len(floors)
        == 2 * len(arms) + sum(name.startswith("simulated/") for name in arms)
        == 24
    )


def section(dataset: str) -> str:
    """What the page says under the heading of a data set."""
    text = Path("reports", OWN).read_text()
    return text[text.index(f'id="{EXPERIMENT}-{PROFILE}-{dataset}"') :].split(">Lineage</h4>")[0]


def test_companions_by_hand(seen):
    rows = {row["model"]: row for row in results(seen, "simulated")}
    assert {arm: row[AGAINST] for arm, row in rows.items()} == {
        "day_average": "+20 %",
        "hour_average": "+0 %",
        "knn": "-50 %",
        "kernel": "-55 %",
        "msa-shared-20k": "-62 %",
        "msa-gaussian-20k": "-64 %",
    }
    assert {arm: row[PRINTED] for arm, row in rows.items()} == {
        "day_average": "not published",
        "hour_average": "not published",
        "knn": "not published",
        "kernel": "7.55–9.19 (thesis 1.2, 3 days)",
        "msa-shared-20k": "7.98 ± 0.03 (thesis 3.2)",
        "msa-gaussian-20k": "not published",
    }
    assert "Noise floor" not in section("hour_winds")


def test_numbers_are_those_of_metrics_json(seen):
    arms = parts.read(HOME)["arms"]
    for dataset in CELLS:
        for row in results(seen, dataset):
            arm = arms[f"{dataset}/{row['model']}"]
            assert set(row) == {
                "model",
                "seeds",
                AGAINST,
                PRINTED,
                *(title for _, title in tables.COLUMNS),
            } and row["seeds"] == str(arm["seeds"])
            for key, title in tables.COLUMNS:
                summary = arm["metrics"].get(key)
                assert row[title].split(" ")[0] == (
                    "–" if summary is None else f"{summary['mean']:.2f}"
                ), (row["model"], key)
    assert (
        next(row for row in results(seen, "simulated") if row["model"] == "msa-shared-20k")[
            "RMSE per component [kn]"
        ]
        == "7.60 ± 0.66 [6.70, 8.50]"
    )


def test_the_points_told_are_all_held_out_points_and_not_those_that_one_metric_knows(seen):
    assert (
        all("3,210 held-out points" in section(dataset) for dataset in CELLS)
        and "777" not in seen.text
    )


def test_one_row_of_a_data_set_is_marked_best_and_it_is(seen):
    for dataset, best in (("simulated", "msa-gaussian-20k"), ("hour_winds", "msa-shared-20k")):
        assert re.findall(r'<tr class="best"><td class="left">([^<]+)<', section(dataset)) == [best]


def test_without_the_hour_average_there_is_nothing_to_compare_with_and_the_page_says_so():
    errors = {"rmse_component_kn": {"mean": 3.0}, "rmse_component_m_s": {"mean": 1.54}}
    found = tables.results({"d/knn": {"seeds": 1, "metrics": errors}}, "d", {})
    assert [row[found.titles.index(AGAINST)] for row in found.rows] == ["–"]


# --- claims, validation, lineage


def test_every_claim_is_there_with_its_verdict_numbers_seeds_and_why(seen, front):
    claims = files.read_json(HOME / "claims.json", list)
    titles = {
        "id": "id",
        "data set": "dataset",
        "claim": "text",
        "source": "source",
        "verdict": "verdict",
        "why": "why",
    }
    rows = rows_of(seen, "the claims ledger")
    assert [{title: row[title] for title in titles} for row in rows] == [
        {title: claim[key] for title, key in titles.items()} for claim in claims
    ]
    assert all(
        (row["experiment"], row["profile"]) == (EXPERIMENT, PROFILE)
        and row["interval"]
        and row["seeds"]
        for row in rows
    )
    ends = [
        "[{:.3g}, {:.3g}]".format(*claim["interval"]) if claim["interval"] else "none: counted"
        for claim in claims
    ]
    assert ends and [row["interval"] for row in rows] == ends
    assert f"claims of {EXPERIMENT}, {PROFILE}: " in seen.text
    every = read("claims.html")
    assert every.problems == [] and rows_of(every, "The claims of the documents, as checks") == rows
    shown = rows_of(front, "the claims ledger")
    assert [row | {"why": ""} for row in shown] == [row | {"why": ""} for row in rows]
    assert [row["why"] for row in shown] == [
        row["why"] for row in report.first_reasons([{"why": row["why"]} for row in rows])
    ]


def test_the_front_page_tells_the_first_reason_and_how_many_follow():
    long = "the errors differ " * 20
    told = report.first_reasons([{"why": why, "id": "I-2"} for why in ("one", "one; two; 3", long)])
    assert [one["why"] for one in told[:2]] == ["one", "one (and 2 more)"]
    assert told[2] == {"why": f"{long[: report.LONG].rstrip()} …", "id": "I-2"}


def test_every_result_has_its_three_companions_or_the_words_that_there_is_none(seen, front):
    assert seen.tables["all results"] == front.tables["all results"]
    arms = parts.read(HOME)["arms"]
    titles, *rows = seen.tables["all results"]
    rows = [dict(zip(titles, row, strict=True)) for row in rows if len(row) > 1]
    assert len(rows) == len(arms)
    assert all(text.strip() not in ("", "–", "None") for row in rows for text in row.values())
    told = {(row["data set"], row["model"]): row for row in rows}
    one = told["simulated", "msa-shared-20k"]
    assert (one["value"], one["published"], one["seeds"]) == (
        "7.60 ± 0.66 [6.70, 8.50]",
        "7.98 ± 0.03 (thesis 3.2)",
        "3",
    )
    assert (
        one["exact bound or noise floor"] == f"sensor noise {FLOOR['simulated']:.2f}"
        and one["trivial baseline"] == "hour_average 20.00 (-62 %)"
    )
    assert told["simulated", "day_average"]["published"] == "not published"
    assert told["hour_winds", "hour_average"]["exact bound or noise floor"] == "none is known"
    assert f"dvc repro reports/{EXPERIMENT}/dvc.yaml:tabulate@{PROFILE}" in seen.text


def test_expectations_that_are_not_met_are_open_and_all_of_them_a_link_away(front):
    seen = front
    links = [value for tag, name, value in seen.attributes if (tag, name) == ("a", "href")]
    for dataset in CELLS:
        rows = rows_of(seen, f"expectations of {dataset} ({PROFILE})")
        assert [(row["expectation"], row["result"], row["observed"]) for row in rows] == [
            ("few_nulls", "not met", "41000")
        ]
        assert f"../data/{PROFILE}/validated/{dataset}.json" in links
        assert f"{PROFILE} · {dataset}: passed, 1 warning(s)" in seen.text
    assert sum(tag == "details" and name == "open" for tag, name, _ in seen.attributes) == len(
        CELLS
    )


def test_every_data_set_has_its_lineage(seen):
    named = [value for tag, name, value in seen.attributes if tag == "svg" and name == "aria-label"]
    assert [one for one in named if one.startswith("lineage")] == [
        f"lineage of {d}" for d in sorted(CELLS)
    ]


def test_the_example_of_an_audit_names_a_number_that_was_made(seen, front):
    arms = parts.read(HOME)["arms"]
    for one in (seen, front):
        example = re.search(
            rf"tradewind audit {EXPERIMENT}/{PROFILE}/(\S+)/rmse_component_kn --verify", one.text
        )
        assert example[1] in arms


def test_the_readme_beside_the_page_has_every_arm_and_every_claim(seen):
    text = Path("reports/README.md").read_text()
    arms = parts.read(HOME)["arms"]
    claims = files.read_json(HOME / "claims.json", list)
    assert len(re.findall(r"(?m)^\| (?:\w+_average|knn|kernel|msa-\S+) \| \d \|", text)) == len(
        arms
    )  # a table of results tells the seeds
    assert all(
        (
            f"| {c['id']} {c['text']} ({c['source']}) | {c['dataset']} | **{c['verdict']}** | "
            f"{c['why']} |"
        )
        in text
        for c in claims
    )
    assert re.findall(r"(?m)^(#+) (.+)$", text) == [
        ("#", "Results"),
        ("##", f"{EXPERIMENT}, profile {PROFILE}"),
        ("###", "hour_winds"),
        ("###", "simulated"),
        ("###", "Claims of the documents"),
    ]


def test_the_front_page_knows_an_experiment_by_what_it_wrote_alone(front, tmp_path, monkeypatch):
    told = files.read_json(HOME / "page.json")
    monkeypatch.chdir(tmp_path)
    home = Path("reports/a_new_one/mini")
    told |= {"experiment": "a_new_one", "family": "fields", "question": "What of <this>?"}
    told |= {"id": "a_new_one-mini", "page": "a_new_one/mini/page.html"}
    files.write_json(home / "page.json", told)
    (home / "table.md").write_text("# a_new_one, profile mini\n")
    report.report()
    seen = read()
    assert seen.problems == [] and "What of <this>?" in seen.text and "a_new_one-mini" in seen.ids
    assert len(seen.tables["all results"]) == len(front.tables["all results"])
    assert "## a_new_one, profile mini" in Path("reports/README.md").read_text()
