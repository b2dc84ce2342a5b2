"""`tradewind`: help that can be followed, arguments that arrive, mistakes that end in a message
and the right exit status."""

import os
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

from stages import cli, errors, params
from stages.audit import comparison, comparison_text, impact, render, verify
from stages.winds.nowcast import answers, benchmark, nowcast

ROOT = Path(__file__).parents[1]
OPTIONS = {
    "nowcast": (
        "--context",
        "--at",
        "--points",
        "--grid",
        "--route",
        "--model",
        "--json",
        "--csv",
        "--out",
        "--plot",
    ),
    "try": ("--plot",),
    "score": ("EXPERIMENT/PROFILE/DATASET/CELL", "FILE", "--json", "--even-if-trained-on"),
    "biases": ("DECODED", "--out", "--all", "--heading-deg", "--airspeed-kt"),
    "init": ("DATA_FILE", "--name", "--profile", "--licence", "--url", "--dry-run"),
    "audit": (
        "EXPERIMENT/PROFILE/DATASET/CELL/METRIC",
        "--verify",
        "record",
        "hash",
        "eval",
        "train",
    ),
    "compare": ("COMMIT", "--results", "--every", "--measure"),
    "impact": ("FILE",),
    "benchmark": ("FOLDER",),
    "capture": ("FOLDER", "--hours", "--seed"),
    "doctor": ("--json", "--arithmetic"),
    "why": ("A..B", "EXPERIMENT/PROFILE/DATASET/CELL/METRIC", "--attribute"),
    "rows": ("--dataset", "--day", "--aircraft", "--flight", "--file"),
    "trend": ("EXPERIMENT/PROFILE/DATASET/CELL/METRIC", "--plot"),
    "gates": ("FOLDER",),
    "verify": ("BUNDLE", "--all", "--commit"),
    "release": ("FOLDER", "--with-data"),
    "card": ("EXPERIMENT/PROFILE/DATASET/CELL",),
    "croissant": ("FOLDER", "PROFILE/DATASET"),
    "export": ("FOLDER",),
    "champion": (),
    "rollback": ("NUMBER",),
    "ledger": ("--last", "--verify"),
}
POINT = "46.5,7.2,34000,2026-01-17T05:00:00Z"


def run(monkeypatch, *arguments: str) -> int:
    """The exit status of `tradewind ARGUMENTS`, wherever it is decided."""
    monkeypatch.setattr(sys, "argv", ["tradewind", *arguments])
    try:
        return cli.main()
    except SystemExit as end:
        return end.code


# --- help


@pytest.mark.parametrize("verb", OPTIONS)
def test_the_help_of_a_verb_names_its_options(monkeypatch, capsys, verb):
    assert run(monkeypatch, verb, "--help") == 0
    out, err = capsys.readouterr()
    assert err == "" and all(option in out for option in OPTIONS[verb])


@pytest.mark.parametrize("verb", OPTIONS)
def test_the_help_of_a_verb_ends_with_an_example_that_can_be_typed(monkeypatch, capsys, verb):
    run(monkeypatch, verb, "--help")
    examples = [
        line.strip()
        for line in capsys.readouterr().out.splitlines()
        if line.startswith("  tradewind ")
    ]
    assert len(examples) == 1
    assert cli.parser().parse_args(shlex.split(examples[0])[1:]).verb == verb


def test_the_help_of_the_program_names_every_verb_and_no_verb_goes_untested(monkeypatch, capsys):
    assert run(monkeypatch, "--help") == 0
    out = capsys.readouterr().out
    assert all(
        f"\n{verb} " in out for verb in OPTIONS
    )  # in the description, with a line of what it is for
    verbs = next(action for action in cli.parser()._actions if action.dest == "verb")
    assert set(verbs.choices) == set(OPTIONS)


def test_help_does_not_wait_for_the_libraries_of_the_work():
    code = (
        "import sys; from stages import cli; cli.parser(); print(sorted({'torch', 'polars', "
        "'matplotlib', 'great_expectations'} & set(sys.modules)))"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout
        == "[]\n"
    )


def test_the_installed_command_is_this_one():
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"] == {
        "tradewind": "tradewind.cli:main"  # as a wheel calls `stages`
    }


# --- mistakes


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("forecast",),
        ("nowcast",),
        ("nowcast", "--at", POINT),
        ("nowcast", "--context", "x.csv"),
        ("nowcast", "--context", "x.csv", "--at", POINT, "--points", "p.csv"),
        ("score", "a/b/c/d"),
        ("init",),
        ("biases",),
        ("audit",),
        ("audit", "a/b/c/d/e", "--verify", "everything"),
        ("impact",),
        ("compare", "a", "b"),
        ("compare", "--results"),
        ("benchmark",),
        ("impact", "a", "b"),
        ("why", "HEAD"),
        ("rows",),
        ("release",),
        ("card",),
        ("croissant",),
    ],
)
def test_a_command_line_that_cannot_be_understood_is_refused_with_status_2(
    monkeypatch, capsys, arguments
):
    assert run(monkeypatch, *arguments) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("usage: tradewind")


@pytest.mark.parametrize("arguments", [("verify",), ("verify", "x.zip", "--all")])
def test_what_to_verify_must_be_said(monkeypatch, capsys, arguments):
    assert run(monkeypatch, *arguments) == 2
    assert "either --all or the path of a bundle" in capsys.readouterr().err


def kinds(base=errors.TradewindError):
    return [base, *(kind for sub in base.__subclasses__() for kind in kinds(sub))]


STATUS = {"InputError": 2, "ParamsError": 2, "JudgeError": 70, "BusyError": 75}


@pytest.mark.parametrize(
    "kind",
    sorted({k for k in kinds() if k.__module__ == "stages.errors"}, key=lambda kind: kind.__name__),
)
def test_an_error_is_told_on_stderr_with_all_its_parts_and_its_status(monkeypatch, capsys, kind):
    def fail(*_, **__):
        raise kind("it broke", where="there", expected="this", found="that", remedy="so")

    monkeypatch.setattr(impact, "impact", fail)
    assert run(monkeypatch, "impact", "x") == STATUS.get(kind.__name__, 1)
    assert capsys.readouterr() == (
        "",
        "error: it broke\n  where: there\n  expected: this\n  found: that\n  remedy: so\n",
    )


def test_an_error_of_our_own_making_is_not_hidden(monkeypatch):
    monkeypatch.setattr(impact, "impact", lambda *_: {}["absent"])
    with pytest.raises(KeyError):
        run(monkeypatch, "impact", "x")


@pytest.mark.parametrize(
    "arguments",
    [
        ("nowcast", "--context", "x.csv", "--at", POINT),
        ("score", "wind_nowcast/mini/simulated/knn", "x.csv"),
        ("audit", "wind_nowcast/mini/simulated/knn/nse"),
        ("impact", "x.csv"),
        ("compare",),
        ("compare", "HEAD", "--measure"),
        ("why", "HEAD~1..HEAD", "wind_nowcast/mini/simulated/knn/nse"),
        ("trend", "wind_nowcast/mini/simulated/knn/nse"),
        ("rows", "--dataset", "mini/simulated"),
    ],
)
def test_a_folder_that_is_no_project_is_the_users_mistake(monkeypatch, capsys, tmp_path, arguments):
    monkeypatch.chdir(tmp_path)
    assert run(monkeypatch, *arguments) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("error: ")
    assert arguments[0] in ("nowcast", "score") or "at the root of a clone" in err
    assert list(tmp_path.iterdir()) == []


# --- what arrives


def test_nowcast_passes_on_what_was_asked_and_prints_the_answer(monkeypatch, capsys):
    asked, folder = [], Path("data/mini/example/runs/simulated")
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(params, "load", lambda: "the params")
    monkeypatch.setattr(
        nowcast, "nowcast", lambda context, **given: asked.append((context, given)) or ["a row"]
    )
    monkeypatch.setattr(answers, "render", lambda rows: f"rendered {rows}")
    assert (
        run(
            monkeypatch,
            "nowcast",
            "--context",
            "c.csv",
            "--at",
            POINT,
            "--at",
            "1,2,3,4",
            "--model",
            "data/mini/example/runs/simulated",
        )
        == 0
    )
    assert run(monkeypatch, "nowcast", "--context", "c.parquet", "--points", "p.csv") == 0
    none = dict.fromkeys(("at", "points", "grid", "route", "model")) | {"settings": "the params"}
    assert asked == [
        ("c.csv", {**none, "called": "c.csv", "at": [POINT, "1,2,3,4"], "model": folder}),
        ("c.parquet", {**none, "called": "c.parquet", "points": "p.csv"}),
    ]
    assert capsys.readouterr() == ("rendered ['a row']\nrendered ['a row']\n", "")


@pytest.mark.parametrize("joint", ["=", " "])
def test_a_point_south_west_of_everything_is_an_argument_and_no_option(joint):
    point = "-33.9,-70.5,34000,0"
    words = f"nowcast --context c --at{joint}{point}".split()
    assert cli.parser().parse_args(words).at == [point]


@pytest.mark.parametrize(
    "words",
    [
        ("croissant", "FOLDER"),
        ("benchmark", "FOLDER"),
        ("capture", "FOLDER", "--hours", "0:1"),
        ("export", "FOLDER"),
        ("try", "--plot", "FOLDER"),
    ],
)
def test_a_place_that_cannot_be_made_is_the_users_mistake_and_no_traceback(
    monkeypatch, capsys, words
):
    monkeypatch.chdir(ROOT)
    where = "/dev/null/none"
    assert run(monkeypatch, *[where if word == "FOLDER" else word for word in words]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("error: ") and "/dev/null" in err


def test_the_version_is_that_of_the_project(monkeypatch, capsys):
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert run(monkeypatch, "--version") == 0
    assert capsys.readouterr().out == f"tradewind {version}\n"


@pytest.mark.parametrize("status", [0, 1, 3])
@pytest.mark.parametrize(
    "given, depth",
    [
        ((), "record"),
        (("--verify", "hash"), "hash"),
        (("--verify", "eval"), "eval"),
        (("--verify", "train"), "train"),
    ],
)
def test_audit_passes_on_number_depth_and_project_and_ends_with_the_verdicts_status(
    monkeypatch, capsys, tmp_path, status, given, depth
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "params.yaml").touch()
    asked = []
    monkeypatch.setattr(
        verify,
        "audit",
        lambda *arguments: asked.append(arguments) or SimpleNamespace(exit_code=status),
    )
    monkeypatch.setattr(render, "render", lambda finding: f"verdict {finding.exit_code}")
    assert run(monkeypatch, "audit", "e/p/d/c/m", *given) == status
    assert asked == [("e/p/d/c/m", depth, tmp_path)]
    assert capsys.readouterr() == (f"verdict {status}\n", "")


def test_the_depths_offered_are_those_the_audit_knows():
    action = (
        next(a for a in cli.parser()._actions if a.dest == "verb")
        .choices["audit"]
        ._option_string_actions["--verify"]
    )
    assert tuple(action.choices) == tuple(verify.DEPTHS)


@pytest.mark.parametrize("status", [0, 1])
def test_compare_passes_on_what_was_asked_and_its_status(monkeypatch, capsys, tmp_path, status):
    asked = []
    monkeypatch.chdir(tmp_path)
    (tmp_path / "params.yaml").touch()
    finding = SimpleNamespace(exit_code=status)
    monkeypatch.setattr(comparison, "of_commit", lambda *given: asked.append(given) or finding)
    monkeypatch.setattr(comparison_text, "render", lambda one, every: f"{one is finding} {every}")
    assert run(monkeypatch, "compare") == status
    assert run(monkeypatch, "compare", "v1", "--results", "other", "--every") == status
    assert asked == [(tmp_path, "HEAD", None), (tmp_path, "v1", Path("other"))]
    assert capsys.readouterr() == ("True False\nTrue True\n", "")


def test_compare_prints_the_files_of_the_spreads_it_measured(monkeypatch, capsys, tmp_path):
    asked = []
    monkeypatch.chdir(tmp_path)
    (tmp_path / "params.yaml").touch()
    written = [tmp_path / "a/b.json"]
    monkeypatch.setattr(comparison, "keep_spreads", lambda *given: asked.append(given) or written)
    assert run(monkeypatch, "compare", "v1", "--results", "other", "--measure") == 0
    assert asked == [(tmp_path, "v1", Path("other"))] and capsys.readouterr() == ("a/b.json\n", "")


def test_impact_prints_a_number_a_line(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "params.yaml").touch()
    monkeypatch.setattr(impact, "impact", lambda file, root: [f"{file} of {root}", "another"])
    assert run(monkeypatch, "impact", "data/x") == 0
    assert capsys.readouterr().out == f"data/x of {tmp_path}\nanother\n"


def test_benchmark_freezes_the_mini_profiles_simulated_set_in_the_folder_named(monkeypatch, capsys):
    monkeypatch.setattr(benchmark, "build", lambda *given: f"built {given}")
    assert run(monkeypatch, "benchmark", "../out") == 0
    assert capsys.readouterr().out == f"built {(Path('data/mini'), 'simulated', Path('../out'))}\n"


@pytest.mark.parametrize("lines", [3, 50_000])
def test_a_reader_that_leaves_early_is_no_error(lines):
    """`tradewind impact FILE | head -1`: no traceback, no complaint at the interpreter's end,
    few lines or many."""
    code = (
        "import sys; from stages import cli; from stages.audit import impact as a; "
        f"a.impact = lambda *_: ['x'] * {lines};sys.stdin.read(); sys.exit(cli.main())"
    )
    reader, writer = os.pipe()
    env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    process = subprocess.Popen(
        [sys.executable, "-c", code, "impact", "file"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
    )
    os.close(writer)
    os.close(reader)
    assert (process.communicate("")[1], process.returncode) == ("", 0)
