"""The benchmark of chapter 3's models: a fair yardstick, memory that is counted exactly, and all
that was asked for in its tables."""

import json

import pytest
import torch

from stages import params
from stages.errors import InputError
from stages.fields.models import build
from tests.benchmarks import bench_fields, clock, scaling

CPU, MODELS = torch.device("cpu"), params.load().models
SETTINGS = [
    scaling.Setting(name, *shape, bench_fields.DIMS[name])
    for name, shape in bench_fields.QUICK_SHAPES.items()
]
# torch's name of a part of an encoder layer -> ours
PARTS = {
    "self_attn.in_proj_": "attention.inward.",
    "self_attn.out_proj.": "attention.outward.",
    "norm1.": "attention_norm.",
    "linear1.": "widen.",
    "linear2.": "narrow.",
    "norm2.": "feed_norm.",
}


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What a quick run writes and prints."""
    file = tmp_path_factory.mktemp("bench") / "fields.json"
    said = []
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("TRADEWIND_DEVICE", raising=False)
        patch.setattr(clock, "OTHERS", float("inf"))  # no round is repeated
        patch.setattr(scaling, "SHORTEST_S", 0.0)
        patch.setattr("builtins.print", lambda *words, **_: said.append(" ".join(map(str, words))))
        assert bench_fields.main(["--quick", "--json", str(file)]) == 0
    return json.loads(file.read_text()), "\n".join(said)


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
@pytest.mark.parametrize("size", bench_fields.JUDGED)
def test_the_yardstick_is_the_same_function_as_our_msa(setting, size):
    ours = scaling.Contender("msa", size=size).made(MODELS, setting)
    torchs = scaling.Contender("torch", size=size).made(MODELS, setting)
    assert sum(p.numel() for p in ours.parameters()) == sum(p.numel() for p in torchs.parameters())
    weights = torchs.state_dict()
    renamed = {}
    for name, value in weights.items():
        name = name.removeprefix("inside.").replace("encoder.layers.", "layers.")
        name = f"encoder.{name}" if name.startswith(("context.", "target.")) else name
        for theirs, mine in PARTS.items():
            name = name.replace(theirs, mine)
        renamed[name] = value
    ours.load_state_dict(renamed)
    batch = setting.batch(CPU)
    for model in (ours, torchs):
        model.eval()
    torch.testing.assert_close(ours(batch).mean, torchs(batch).mean, rtol=1e-4, atol=1e-5)
    for model in (ours, torchs):
        model.train()
    torch.testing.assert_close(ours(batch).mean, torchs(batch).mean, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "work, mib",
    [
        (lambda x: x.exp(), 4),
        (lambda x: x.exp().exp_(), 4),
        (lambda x: x.exp() + x.cos(), 12),
        (lambda x: x.exp().cos().sin(), 8),
        (lambda x: x.neg_(), 0),
        (lambda x: [x.exp() for _ in range(9)][0], 36),
    ],
)
def test_peak_memory_is_the_most_that_was_held_at_once(work, mib):
    x = torch.zeros(1 << 20)  # 4 MiB
    for _ in range(2):  # whatever lay there before
        assert scaling.counted(lambda: work(x), CPU)[0] == pytest.approx(mib, abs=1e-3)


def test_a_step_holds_at_least_gradients_and_the_optimizers_state():
    call, parameters = scaling.fresh(scaling.Contender("msa"), MODELS, SETTINGS[1], CPU, "step")
    assert (
        scaling.counted(call, CPU)[0] > 3 * 4 * parameters / scaling.MIB
    )  # a gradient and two moments each
    call, parameters = scaling.fresh(
        scaling.Contender("msa"), MODELS, SETTINGS[1], CPU, "evaluation"
    )
    assert scaling.counted(call, CPU)[0] < 3 * 4 * parameters / scaling.MIB


def test_a_layers_math_kernel_holds_its_score_matrices_and_the_others_do_not():
    points, heads = 512, 2
    matrix = heads * points**2 * 4 / scaling.MIB
    held = {
        name: scaling.counted(scaling.kernel(name, 24, heads, points, CPU), CPU)[0]
        for name in ("math", "flash", "ours")
    }
    assert held["math"] > 2 * matrix and max(held["flash"], held["ours"]) < matrix


def test_what_needs_too_much_memory_or_time_is_left_out_by_name(monkeypatch):
    monkeypatch.setattr(scaling, "ROUND_S", 0.0)
    made = {"square": lambda n: lambda: torch.zeros(n, n), "line": lambda n: lambda: torch.zeros(n)}
    rows = [
        row for rung in scaling.ladder(made, (256, 512, 1024, 2048), CPU, 2.0, 60.0) for row in rung
    ]
    square = [row for row in rows if row["contender"] == "square"]
    assert [row.get("mib") for row in square] == [pytest.approx(0.25), pytest.approx(1), None, None]
    assert (
        "0.00391 GiB at 1,024 points" in square[2]["skipped"]
        and square[3]["skipped"] == square[2]["skipped"]
    )
    assert all("skipped" not in row for row in rows if row["contender"] == "line")
    fits = {fit["contender"]: fit for fit in scaling.growth(rows, 256)}
    assert fits["square"]["points"] == [256, 512] and fits["square"]["memory"] == pytest.approx(2)
    assert fits["line"]["memory"] == pytest.approx(1) and scaling.growth(rows, 2048) == []
    late = [row for rung in scaling.ladder(made, (256, 512), CPU, 2.0, 0.0) for row in rung]
    assert ["0 s were left" in row.get("skipped", "") for row in late] == [False, False, True, True]


def test_a_contender_that_cannot_says_so_and_the_others_run():
    def broken(points):
        raise RuntimeError("No available kernel.\nAborting execution.")

    rows = next(
        scaling.ladder(
            {"broken": broken, "line": lambda n: lambda: torch.zeros(n)}, (64,), CPU, 1.0, 60.0
        )
    )
    assert rows[0]["skipped"] == "No available kernel." and rows[1]["ms"] > 0


def test_exponents_are_those_of_power_laws():
    points = [4096, 8192, 16384, 50000]
    assert scaling.exponent(points, [3e-4 * n**1.07 for n in points]) == pytest.approx(1.07)
    rows = [
        {
            "contender": "a",
            "points": n,
            "mib": 2.0 * n,
            "ms": n**1.5,
            "rounds_ms": [n**1.4, n**1.5, n**1.6],
        }
        for n in [256, *points]
    ]
    (fit,) = scaling.growth(
        [*rows, {"contender": "a", "points": 10**6, "skipped": "too large"}], 4096
    )
    assert fit["points"] == points
    assert [fit[name] for name in ("time", "low", "high", "memory")] == pytest.approx(
        [1.5, 1.4, 1.6, 1.0]
    )


def test_every_model_is_timed_in_both_settings_or_says_why_not(told):
    content, printed = told
    rows = {
        (row["setting"], row["model"], row["size"], row["work"]): row for row in content["models"]
    }
    assert {(setting, model) for setting, model, _, _ in rows} == {
        (s, m) for s in ("wind", "poisson") for m in ("msa", *bench_fields.OTHERS)
    }
    skipped = {key[:2] for key, row in rows.items() if "skipped" in row}
    assert skipped == {("wind", "geofno"), ("poisson", "kernel_mlp")}
    assert {key[2:] for key in rows if key[1] == "msa"} == {
        (size, work) for size in ("5k", "20k") for work in ("step", "evaluation")
    }
    for key, row in rows.items():
        if key[:2] not in skipped:
            assert (
                0 < row["low"] <= row["ratio"] <= row["high"]
                and min(row["ms"], row["torch_ms"], row["mib"], row["torch_mib"]) > 0
            )
            assert row["mib_ratio"] == pytest.approx(row["mib"] / row["torch_mib"])
        assert f"{key[0]:8} {key[1]:11} {key[2]:5}" in printed
    assert (
        rows["wind", "msa", "5k", "step"]["torch_mib"]
        < rows["wind", "msa", "20k", "step"]["torch_mib"]
    )  # a yardstick of its own size
    assert "WARNING: a quick run" in printed


def test_parameters_are_those_of_the_sizes_by_name(told):
    rows = {
        (row["setting"], row["model"], row["size"]): row.get("parameters")
        for row in told[0]["models"]
    }
    assert (
        rows["wind", "msa", "5k"] == 4934
        and rows["wind", "msa", "20k"] == 18506
        and rows["wind", "tfs", "20k"] == 20954
    )
    assert (
        rows["wind", "cnp", "20k"] == 29826
        and rows["wind", "hypermixer", "20k"] == 18362
        and rows["wind", "kernel_mlp", "20k"] == 17411
    )


def test_figure_c4_has_models_and_kernels_at_every_size(told):
    content, printed = told
    rows = {(row["points"], row["contender"]): row for row in content["contexts"]}
    names = {"hypermixer", "msa", "layer ours", "layer flash", "layer math", "torch"}
    assert set(rows) == {(points, name) for points in bench_fields.QUICK_POINTS for name in names}
    for (points, name), row in rows.items():
        assert (
            min(row["rounds_ms"]) <= row["ms"] <= max(row["rounds_ms"])
            and row["ratio"] > 0
            and row["mib"] > 0
        )
        yardstick = rows[points, "layer flash" if name.startswith("layer") else "torch"]
        assert row["mib_ratio"] == pytest.approx(row["mib"] / yardstick["mib"])
        assert f"{points:7,} {name:16}" in printed
    assert {fit["contender"] for fit in content["growth"]} == names
    unmeasured = "HyperMixer's exponent was not measured"
    assert unmeasured not in printed and unmeasured in bench_fields.as_text(
        content | {"growth": []}
    )


def test_goals_are_met_or_missed_as_the_rows_say(told):
    content, printed = told
    ratio = {
        (row["setting"], row["size"], row["work"]): row
        for row in content["models"]
        if row["model"] == "msa"
    }
    goals = {row["goal"]: row for row in content["goals"]}
    assert goals["MSA 5k step / torch, wind"]["value"] == ratio["wind", "5k", "step"]["ratio"]
    assert (
        goals["MSA 20k step memory / torch, poisson"]["value"]
        == ratio["poisson", "20k", "step"]["mib_ratio"]
    )
    assert sum("HyperMixer" in name for name in goals) == 1
    for row in content["goals"]:
        assert row["met"] == (row["value"] <= row["bar"])
        assert f"{'met ' if row['met'] else 'MISS'}  {row['goal']}: " in printed


def test_the_goals_are_those_asked_for():
    row = {"setting": "wind", "model": "msa", "mib_ratio": 1.0}
    found = {
        "models": [
            row | {"size": size, "work": work, "ratio": ratio}
            for size in bench_fields.JUDGED
            for work, ratio in (("step", 0.71), ("evaluation", 0.39))
        ],
        "growth": [
            {"contender": "hypermixer", "points": [4096, 50000], "time": 1.11},
            {"contender": "msa", "points": [1, 2], "time": 2.0},
        ],
    }
    met = {row["goal"]: row["met"] for row in bench_fields.goals(found)}
    assert {name for name, fine in met.items() if not fine} == {
        *(f"MSA {size} step / torch, wind" for size in bench_fields.JUDGED),
        "HyperMixer's exponent from 4,096 to 50,000 points",
    }
    assert met["MSA 100k evaluation / torch, wind"] and len(met) == 3 + 1 + 6 + 1


@pytest.mark.parametrize(
    "words, says",
    [
        (["--size", "7k"], "no such size"),
        (["--minutes", "0"], "--minutes"),
        (["--most-gib", "nan"], "--most-gib"),
        (["--minutes", "inf"], "--minutes"),
    ],
)
def test_what_cannot_be_measured_is_refused_before_anything_runs(words, says, capsys, monkeypatch):
    monkeypatch.setattr(bench_fields, "measure_all", lambda *_: pytest.fail("it ran"))
    assert bench_fields.main(words) == 2
    assert says in capsys.readouterr().err


def test_a_device_that_is_not_there_is_refused(capsys, monkeypatch):
    monkeypatch.setenv("TRADEWIND_DEVICE", "cuda:99")
    assert bench_fields.main(["--quick"]) == 2
    assert "TRADEWIND_DEVICE" in capsys.readouterr().err


def test_a_model_that_does_not_fit_says_what_is_the_matter():
    with pytest.raises(InputError):
        build("kernel_mlp", {}, {}, 2, 3, 1)
    row = scaling.pair(
        scaling.Contender("kernel_mlp", "plain"), MODELS, SETTINGS[1], CPU, "step", 1
    )
    assert "3 values" in row["skipped"] and "ms" not in row
