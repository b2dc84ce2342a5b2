"""The search experiment: point sets as the thesis says, counts that can be reckoned by hand, and
wrong answers that are told."""

import itertools
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

from stages import code, files, params, records
from stages.errors import DataError
from stages.neighbours import methods
from stages.neighbours.experiment import evaluate, measure, sets
from stages.neighbours.experiment import evaluate as command
from stages.params import Search

sys.path.insert(0, str(Path(__file__).parents[1] / "training"))
import small_project

SMALL = {
    "points": 1500,
    "queries": 12,
    "neighbours": (3, 40),
    "window": 0.3,
    "segments": (10, 25),
    "fetch": (1, 4),
    "leaves": (10, 100),
    "seed": 0,
    "sets": {
        "original": ("toy",),
        "synthetic": ("smoothed_random_walk", "random_points", "simultaneous_points"),
    },
}
SEARCH = Search(**SMALL)
SETTINGS = measure.Settings(SEARCH, resamples=100)
METRICS = {
    "comparisons": "points",
    "seen": "points",
    "comparisons_share": "1",
    "wrong_rows": "queries",
}


def prepare(folder: Path, rows: int = 900, **columns) -> Path:
    """A prepared data set of nine flights over half an hour, with a lead of five minutes."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(1)
    t = np.sort(np.random.default_rng(0).uniform(1e9, 1e9 + 1800, rows))
    table = {
        "t_s": t,
        "lat_deg": rng.normal(47, 1, rows).astype(np.float32),
        "lon_deg": rng.normal(8, 2, rows).astype(np.float32),
        "alt_ft": rng.normal(3e4, 4e3, rows).astype(np.float32),
        "flight": (np.arange(rows) % 9).astype(np.uint32),
    } | columns
    pl.DataFrame(
        {name: values for name, values in table.items() if values is not None}
    ).write_parquet(folder / "rows.parquet")
    files.write_json(folder / "prepared.json", {"lead_s": 300.0})
    return folder


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    return prepare(tmp_path_factory.mktemp("sets") / "toy")


@pytest.fixture(scope="module")
def evaluated(toy):
    evaluate.evaluate("toy", toy, toy.parent / "out", SETTINGS)
    return toy.parent / "out"


def test_a_prepared_set_is_standardised_axis_by_axis_and_its_window_is_its_lead(toy):
    found, rows = sets.build("toy", toy, SEARCH), pl.read_parquet(toy / "rows.parquet")
    for axis, name in enumerate(("lat_deg", "lon_deg", "alt_ft", "t_s")):
        column = rows[name].cast(pl.Float64)
        expected = (column - column.mean()) / column.std(ddof=0)
        assert found.points[:, axis].numpy() == pytest.approx(expected.to_numpy(), abs=1e-6)
    assert (
        found.window == pytest.approx(300 / rows["t_s"].std(ddof=0))
        and found.points.dtype == torch.float32
    )
    assert found.trajectory.tolist() == rows["flight"].to_list()
    first = sets.build("toy", toy, SEARCH.model_copy(update={"points": 100}))
    assert len(first.points) == 100 and float(first.points.double().mean()) == pytest.approx(
        0, abs=1e-6
    )  # its own mean, not all rows'


def test_a_query_sees_what_is_a_window_older(toy):
    found = sets.build("toy", toy, SEARCH)
    t = pl.read_parquet(toy / "rows.parquet")["t_s"].to_numpy()
    asked = found.queries.tolist()
    assert len(set(asked)) == 12 and found.seen().tolist() == [
        int((t <= t[row] - 300).sum()) for row in asked
    ]
    assert torch.equal(found.asked, found.points[asked])
    assert sets.build("toy", toy, SEARCH).queries.tolist() == asked
    assert sets.build("toy", toy, SEARCH.model_copy(update={"seed": 1})).queries.tolist() != asked


@pytest.mark.parametrize("name", ["smoothed_random_walk", "random_points", "simultaneous_points"])
def test_synthetic_sets_are_of_the_wanted_size_and_grouped_in_trajectories(name):
    found = sets.build(name, None, SEARCH)
    assert len(found.points) == 1500 and found.trajectory.bincount().tolist() == [500, 500, 500]
    at_once = name == "simultaneous_points"
    assert found.points.std(0, correction=0).numpy() == pytest.approx(
        [1, 1, 1, 0 if at_once else 1], abs=0.1
    )
    assert found.window == (0 if at_once else 0.3) and (found.seen() == 1500).all() == at_once
    assert torch.equal(found.points, sets.build(name, None, SEARCH).points)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"alt_ft": np.full(900, 3e4, np.float32)}, "does not vary"),
        ({"flight": None}, "cannot be read"),
        ({"rows": 0}, "does not vary"),
    ],
)
def test_a_set_that_cannot_be_searched_is_told(tmp_path, changed, told):
    with pytest.raises(DataError, match=told) as caught:
        sets.build("toy", prepare(tmp_path / "toy", **changed), SEARCH)
    assert "toy" in str(caught.value)


def by_hand(points, query, k, scale, window):
    """The neighbours of one query by sorting everything, in scalars of float32."""
    pairs = []
    for index, point in enumerate(points):
        if window is None or float(point[3]) <= float(query[3]) - window:
            gaps = [np.float32(q) - np.float32(p) for q, p in zip(query, point, strict=True)]
            x, y, z, t = (np.float32(s) * (gap * gap) for s, gap in zip(scale, gaps, strict=True))
            pairs.append((((x + y) + z) + t, index))
    pairs = sorted(pairs)[:k] + [(np.float32(np.inf), -1)] * max(0, k - len(pairs))
    return [d for d, _ in pairs], [i for _, i in pairs]


@pytest.mark.parametrize("window", [0.2, None])
def test_brute_force_is_sorting_with_ties_by_the_lowest_index(window):
    rng = np.random.default_rng(3)
    points = rng.integers(-2, 3, (120, 4)).astype(np.float32)  # many ties, many duplicates
    points[:60] += rng.normal(size=(60, 4)).astype(np.float32)
    queries, scales = points[::9], rng.uniform(0, 9, (14, 4)).astype(np.float32)
    for scale in (np.array([1, 1, 4, 9], np.float32), scales):
        distances, indices = measure.brute_force(points, queries, 7, scale, window)
        for row, weights in enumerate(np.broadcast_to(scale, (14, 4))):
            expected = by_hand(points, queries[row], 7, weights, window)
            assert (distances[row].tolist(), indices[row].tolist()) == (
                [float(d) for d in expected[0]],
                expected[1],
            )
    assert window is None or (indices == -1).any()  # some see fewer than seven


class Planted:
    """The right answer to every query but the sixth, whose answer is spoilt."""

    def __init__(self, spoil, *arguments, **options):
        self.spoil, self.right = spoil, methods.build("linear", *arguments)

    def query(self, *arguments, **options):
        answer = self.right.query(*arguments, **options)
        self.spoil(answer, 5)
        return answer


def swapped(answer, row):
    answer.index[row, :2] = answer.index[row, :2].flip(0)


def rounded(answer, row):
    answer.square_distance[row, 0] = torch.nextafter(
        answer.square_distance[row, 0], torch.tensor(9.0)
    )


def repeated(answer, row):
    answer.index[row, 1], answer.square_distance[row, 1] = (
        answer.index[row, 0],
        answer.square_distance[row, 0],
    )


def masked(answer, row):
    answer.mask[row, -1] = ~answer.mask[row, -1]


@pytest.mark.parametrize("spoil", [swapped, rounded, repeated, masked])
def test_an_answer_that_is_wrong_in_one_place_is_counted(spoil):
    points = sets.build("random_points", None, SEARCH)
    assert points.seen()[5] > 3
    found, table = measure.measure(
        points, SETTINGS, lambda name, *rest, **options: Planted(spoil, *rest)
    )
    for cell, content in found["cells"].items():
        wrong = content["metrics"]["wrong_rows"]
        assert (wrong["value"], wrong["n"]) == (1, 12) and wrong["low"] == 0 < wrong["high"], cell
    assert set(table.filter(pl.col("wrong"))["query"]) == {int(points.queries[5])}


def test_every_method_k_scale_leaf_and_fetch_is_a_cell_that_audit_can_address(evaluated):
    cells = files.read_json(evaluated / "metrics.json")["cells"]
    expected = {
        f"{method}-{arm}-k{k}"
        for method, arm, k in itertools.product(methods.METHODS, ("iso", "aniso"), (3, 40))
    }
    expected |= {
        f"kdtree-{variant}-leaf{leaf}-k40"
        for variant, leaf in itertools.product(("plain", "scaled", "masked"), (10, 100))
    }
    expected |= {f"trajectory-K{k}-F{f}" for k, f in itertools.product((10, 25), (1, 4))}
    assert (
        set(cells) == expected | {"trajectory-segment_bound-k40", "trajectory-box_bound-k40"}
        and len(methods.METHODS) == 6
    )
    for cell, content in cells.items():
        assert {name: metric["unit"] for name, metric in content["metrics"].items()} == METRICS
        assert (
            not any(part.startswith("s") and part[1:].isdigit() for part in cell.split("-"))
            and "/" not in cell
        )


def test_counts_are_of_points_and_shares_of_what_is_seen(toy, evaluated):
    content, points = files.read_json(evaluated / "metrics.json"), sets.build("toy", toy, SEARCH)
    seen = points.seen()
    assert (content["points"], content["trajectories"], content["window"]) == (
        900,
        9,
        points.window,
    )
    table = pl.read_parquet(evaluated / "queries.parquet")
    assert table["cell"].unique(maintain_order=True).to_list() == [
        cell.name for cell in measure.plan(SEARCH, "toy")
    ]
    for cell, entry in content["cells"].items():
        mine, metrics = table.filter(pl.col("cell") == cell), entry["metrics"]
        assert (
            mine["query"].to_list() == points.queries.tolist()
            and not mine["wrong"].any()
            and metrics["wrong_rows"]["value"] == 0
        )
        whole = "plain" in cell or "scaled" in cell  # these trees are not masked
        assert mine["seen"].to_list() == ([900] * 12 if whole else seen.tolist())
        assert metrics["comparisons"]["value"] == pytest.approx(mine["comparisons"].mean())
        assert metrics["comparisons_share"]["value"] == pytest.approx(
            mine["comparisons"].sum() / mine["seen"].sum()
        )
        for metric in metrics.values():
            assert metric["low"] <= metric["value"] <= metric["high"] and metric["n"] == 12
        if cell.startswith("linear"):
            assert metrics["comparisons_share"] == {
                "value": 1.0,
                "low": 1.0,
                "high": 1.0,
                "unit": "1",
                "n": 12,
            }


def test_intervals_are_of_queries_drawn_one_by_one():
    """Against the bootstrap written out: with 400 queries its ends lie where normal theory puts
    them."""
    rng = np.random.default_rng(0)
    took = rng.integers(0, 1000, 400)
    table = pl.DataFrame(
        {"cell": ["a"] * 400, "comparisons": took, "seen": np.full(400, 2000), "wrong": took < 100}
    )
    found = measure.summarise(table, measure.drawn(400, 4000, rng))
    half = 1.645 * took.std() / 20
    assert found["comparisons"]["low"] == pytest.approx(took.mean() - half, abs=3)
    assert found["comparisons_share"]["high"] == pytest.approx(
        (took.mean() + half) / 2000, abs=0.002
    )
    with pytest.raises(DataError, match="no query sees"):
        measure.summarise(table.with_columns(seen=pl.lit(0)), measure.drawn(400, 10, rng))


def test_made_again_it_is_the_same_to_the_byte_with_any_threads(toy, evaluated, tmp_path):
    evaluate.evaluate("toy", toy, tmp_path / "toy", measure.Settings(SEARCH, 100, threads=2))
    torch.set_num_threads(1)
    for name in ("bound.json", "metrics.json", "queries.parquet"):
        assert (tmp_path / "toy" / name).read_bytes() == (evaluated / name).read_bytes()


@pytest.fixture
def project(toy, tmp_path, monkeypatch):
    """A project's root whose mini profile searches the toy set, and whose sample searches
    nothing."""
    home = Path.cwd()
    small_project.code(tmp_path)
    for name, copied in (
        ("params.yaml", "given.yaml"),
        *[
            (f"stages/params/{part}",) * 2
            for part in ("budgets/mini/winds.yaml", "datasets/winds.yaml")
        ],
    ):
        (tmp_path / copied).write_text(
            (home / name).read_text(encoding="utf-8").replace("simulated", "toy"), encoding="utf-8"
        )
    (tmp_path / "data/mini/prepared").mkdir(parents=True)
    (tmp_path / "data/mini/prepared/toy").symlink_to(toy)
    monkeypatch.chdir(tmp_path)
    wanted({})
    return tmp_path


def wanted(change: dict) -> None:
    """Write params.yaml (JSON is YAML) with the small search, changed."""
    given = params.read_yaml(Path("given.yaml"))
    given["profiles"]["mini"]["search"] = SEARCH.model_dump(mode="json") | change
    given["profiles"]["sample"].pop("search", None)
    files.write_json("params.yaml", given | {"run": given["profiles"]["mini"]})


def test_the_stage_writes_its_outputs_and_a_record_of_the_code_that_dvc_watches(project):
    root = Path(command.__file__).parents[3]
    stages = params.read_yaml(root / "reports/neighbours/dvc.yaml")["stages"]
    for name, inputs in (("toy", {"prepared.json", "rows.parquet"}), ("random_points", set())):
        assert command.main(["mini", name]) == 0
        final = Path("reports/neighbours/mini/evaluated") / name
        assert {p.name for p in final.iterdir()} == {
            "bound.json",
            "metrics.json",
            "queries.parquet",
        }
        record = files.read_json(
            records.location("evaluate", "mini", name, experiment="neighbours")
        )
        assert record["outputs"] == {
            p.as_posix(): {"sha256": files.sha256(p), "bytes": p.stat().st_size}
            for p in final.iterdir()
        }
        assert {Path(path).name for path in record["inputs"]} == inputs and (
            record["stage"],
            record["cell"],
        ) == ("evaluate", f"mini/{name}")
        assert record["params"]["search"]["neighbours"] == [3, 40] and record["seed"] == 0
        watched = f"data/code/{command.MODULE.removeprefix('stages.')}.json"
        assert watched in stages["original" if inputs else "synthetic"]["deps"]
        assert record["code"] == code.recorded([command.MODULE], root)
        assert {"stages/neighbours/kdtree.py", "stages/scores/bootstrap.py"} < {
            *record["code"]["files"]
        }


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["mini", "tot"], "'toy'"),
        (["mono", "toy"], "mini"),
        (["sample", "hour_winds"], "section `search`"),
    ],
)
def test_mistakes_are_told_before_any_work(project, capsys, words, told):
    assert command.main(words) == 2
    assert told in capsys.readouterr().err and not (project / "reports").exists()


def test_a_set_that_was_not_prepared_is_told(project, capsys):
    (project / "data/mini/prepared/toy").unlink()
    assert command.main(["mini", "toy"]) == 1 and "dvc repro" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"neighbours": [16, 16]}, "search.neighbours: 16 stands there 2 times"),
        ({"fetch": []}, "search.fetch"),
        ({"window": -1.0}, "search.window"),
        (
            {"sets": {"original": ["tay"], "synthetic": []}},
            "search.sets.original: 'tay' is not among its wind; did you mean 'toy'",
        ),
        ({"sets": {"original": [], "synthetic": ["walks"]}}, "search.sets.synthetic"),
        ({"leafs": [1]}, "leafs"),
    ],
)
def test_parameters_that_cannot_be_are_told_by_key(project, capsys, change, told):
    wanted(change)
    assert command.main(["mini", "toy"]) == 2 and told in capsys.readouterr().err


def test_on_simultaneous_random_points_segments_leave_nothing_out():
    """The document's pathological case: as many comparisons as linear search makes; and every
    method bears an axis that does not vary."""
    cells = measure.measure(sets.build("simultaneous_points", None, SEARCH), SETTINGS)[0]["cells"]
    assert (
        not any(content["metrics"]["wrong_rows"]["value"] for content in cells.values())
        and "trajectory-K10-F1" not in cells
    )
    assert cells["trajectory-iso-k40"]["metrics"]["comparisons_share"]["value"] == 1.0
