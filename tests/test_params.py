"""params.yaml: everything wrong is told at once, by key, with what is allowed and the nearest
name; nothing is executed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from stages import params
from stages.errors import ParamsError

TRUE = Path(__file__).with_name("params_example.yaml").read_text(encoding="utf-8")

BUDGET = {"steps": 9, "validate_every": 3, "patience": 3, "batch": 4, "learning_rate": 1e-3}
CELL = {"dataset": "product", "model": "sigma_gpt", "arm": "random", "size": "tiny", "seed": 0}


def load(tmp_path, text: str | bytes) -> params.Params:
    file = tmp_path / "params.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return params.load(file)


def refused(tmp_path, text: str | bytes) -> str:
    with pytest.raises(ParamsError) as caught:
        load(tmp_path, text)
    assert caught.value.exit_code == 2 and str(tmp_path) in str(caught.value)
    return str(caught.value)


def changed(old: str, new: str) -> str:
    assert old in TRUE
    return TRUE.replace(old, new, 1)


def test_the_projects_own_file_is_valid_and_frozen():
    loaded = params.load(Path(__file__).parents[1] / "params.yaml")
    assert {"mini", "sample", "full"} <= set(loaded.profiles) and loaded.run == loaded.profiles[
        "mini"
    ]
    with pytest.raises(ValueError, match="frozen"):
        loaded.run.profile = "other"


def test_the_profile_is_switched_by_one_word(tmp_path):
    assert load(tmp_path, changed("\nrun: *mini", "\nrun: *sample")).run.profile == "sample"


@pytest.mark.parametrize(
    "old, new, told",
    [
        # unknown keys, with the nearest name of that very place
        (
            "  threads: 1 ",
            "  thread: 1 ",
            ["training.thread:", "did you mean 'threads'", "training.threads: Field required"],
        ),
        (
            "  roll_max_deg: 5.0",
            "  roll_maxdeg: 5.0",
            ["decode.roll_maxdeg", "did you mean 'roll_max_deg'"],
        ),
        (
            "        lead_s: 1800",
            "        leads: 1800",
            ["profiles.mini.prepare.simulated.leads", "did you mean 'lead_s'"],
        ),
        (
            "      dropout: 0.08",
            "      drop_out: 0.08",
            ["datasets.simulated.simulate.drop_out", "did you mean 'dropout'"],
        ),
        # unknown names
        (
            "    datasets: [simulated]  ",
            "    datasets: [simulatd]  ",
            [
                "'simulatd' is unknown",
                "did you mean 'simulated'",
                "'simulated' is not among its datasets",
            ],
        ),
        (
            "    wind: [simulated]  ",
            "    wind: [simulated, skysoft]  ",
            ["profiles.mini.wind: 'skysoft'", "profiles.mini.prepare: 'skysoft' is missing"],
        ),
        ("    profile: mini", "    profile: mino", ["profiles.mini.profile is 'mino'"]),
        (
            "    entry: frames",
            "    entry: frame",
            ["datasets.simulated.entry", "'frames', 'states', 'winds', 'sets' or 'sequences'"],
        ),
        (
            "precision: float32}",
            "precision: float64}",
            ["training.precision", "'float32' or 'bfloat16'"],
        ),
        # wrong types: a quoted number is text, a word is no truth value, truth is no number, 1.5 is
        # no count
        (
            "  learning_rate: 3.0e-4",
            "  learning_rate: '3.0e-4'",
            ["training.learning_rate", "valid number", "'3.0e-4'"],
        ),
        (
            "  learning_rate: 3.0e-4",
            "  learning_rate: 1e-3x",
            ["training.learning_rate", "'1e-3x'"],
        ),
        (
            "  declination: true",
            "  declination: no",
            ["decode.declination", "valid boolean", "'no'"],
        ),
        ("  declination: true", "  declination: 1", ["decode.declination", "valid boolean"]),
        ("  clip: 4.0", "  clip: true", ["training.clip", "valid number", "True"]),
        ("  threads: 1 ", "  threads: true ", ["training.threads", "valid integer"]),
        ("  threads: 1 ", "  threads: 1.5 ", ["training.threads", "valid integer"]),
        ("  threads: 1 ", "  threads: [1] ", ["training.threads", "valid integer"]),
        ("  threads: 1 ", "  threads: ", ["training.threads", "valid integer"]),
        ("    seeds: [0, 1, 2]", "    seeds: 0", ["profiles.mini.seeds", "valid tuple"]),
        # out of range, not finite, huge
        ("  clip: 4.0", "  clip: 0", ["training.clip", "greater than 0"]),
        ("  clip: 4.0", "  clip: -.inf", ["training.clip"]),
        ("  clip: 4.0", "  clip: .nan", ["training.clip"]),
        ("  clip: 4.0", "  clip: 1e999", ["training.clip"]),
        ("  seed: 0\n", f"  seed: {10**40}\n", ["training.seed"]),
        ("  seed: 0\n", f"  seed: {'9' * 5000}\n", ["params.yaml"]),  # longer than Python converts
        (
            "    seeds: [0, 1, 2]",
            "    seeds: [0, -1, 2]",
            ["profiles.mini.seeds.1", "greater than or equal to 0"],
        ),
        (
            "bootstrap: 1000",
            "bootstrap: 10",
            ["evaluation.bootstrap", "greater than or equal to 100"],
        ),
        (
            "          train: [[1860, 18000]]",
            "          train: [[1860, 1860]]",
            ["split.train", "is empty"],
        ),
        (
            "          train: [[1860, 18000]]",
            "          train: [[1860, 18000, 5]]",
            ["split.train.0"],
        ),
        (
            '      start: "2026-01-15T06:00:00Z"',
            "      start: 2026-01-15T06:00:00Z",
            ["simulate.start", "valid string"],
        ),
        # shell characters and other hosts' tricks
        (
            "    sizes: [5k]",
            "    sizes: ['5k; touch pwned']",
            ["profiles.mini.sizes.0", "match pattern"],
        ),
        ("    sizes: [5k]", "    sizes: ['$(id)']", ["profiles.mini.sizes.0"]),
        ("    sizes: [5k]", '    sizes: ["5k\\n"]', ["profiles.mini.sizes.0"]),
        (
            "      wind.csv:\n",
            "      ../wind.csv:\n",
            ["datasets.hour_winds.files", "match pattern"],
        ),
        (
            "https://zenodo.org/record",
            "http://zenodo.org/record",
            ["datasets.skysoft.files.SkySoft_WindSpeed.tar.gz.url", "match pattern"],
        ),
        ("https://zenodo.org/record", "https://user:secret@zenodo.org/record", ["url"]),
        ("https://zenodo.org/record", "'https://zenodo.org/$(id)/record'#", ["url"]),
        ("https://zenodo.org/record", "file:///etc/passwd#", ["url"]),
        ("        md5: 87b5f8c8e7faad810b43af6d67a49428\n", "", ["a source needs a sha256"]),
        ("        bytes_max: 8000000000\n", "", ["a source needs bytes or bytes_max"]),
        # what a profile runs
        (
            "    sizes: [5k]",
            "    sizes: [5kk]",
            ["profiles.mini.sizes: '5kk' is a size of no model", "did you mean '5k'"],
        ),
        (
            "    seeds: [0, 1, 2]",
            "    seeds: [0, 1, 0]",
            ["profiles.mini.seeds: 0 stands there 2 times"],
        ),
        ("    seeds: [0, 1, 2]", "    seeds: []", ["profiles.mini.seeds: empty"]),
        (
            "    arm_seeds: [0]",
            "    arm_seeds: [1, 1]",
            ["profiles.mini.arm_seeds: 1 stands there 2 times"],
        ),
        (
            "          val: [[133260, 144000]]",
            "          val: []",
            ["profiles.mini.prepare.simulated.split.val: no interval"],
        ),
        (
            "          val: [[133260, 144000]]",
            "          val: [[17999, 144000]]",
            [
                (
                    "profiles.mini.prepare.simulated.split: train [1860.0, 18000.0] and val "
                    "[17999.0, 144000.0] overlap"
                )
            ],
        ),
        # where a data set comes from
        (
            "    kind: simulate\n",
            "    kind: files\n",
            ["datasets.simulated", "kind files needs at least one entry in `files`"],
        ),
        (
            "    entry: winds\n    kind: files\n",
            "    entry: winds\n    kind: simulate\n",
            ["datasets.hour_winds", "kind simulate needs the section `simulate`"],
        ),
        (
            '"2026-01-15T06:00:00Z"',
            '"2026-02-30T06:00:00Z"',
            ["datasets.simulated: ", "simulate.start: there is no such moment"],
        ),
        (
            '"2026-01-15T06:00:00Z"',
            '"2026-01-15T25:00:00Z"',
            ["datasets.simulated: ", "simulate.start: there is no such moment"],
        ),
        # what a model takes
        (
            "encoder: traditional",
            "encoder: traditionl",
            ["models.msa.arms.traditional.encoder is 'traditionl', not one of shared, traditional"],
        ),
        (
            "head: gaussian",
            "head: normal",
            ["models.msa.arms.gaussian.head is 'normal', not one of mean, gaussian"],
        ),
        (
            "head: gaussian",
            "haed: gaussian",
            ["models.msa.arms.gaussian.haed is not an argument", "did you mean 'head'"],
        ),
        (
            "width: 12, heads: 2",
            "width: 13, heads: 2",
            ["models.msa.sizes.5k.width is 13, no multiple of its heads, 2"],
        ),
        (
            "width: 12, heads: 2",
            "width: 12, heads: 0",
            ["models.msa.sizes.5k.heads is 0, not from 1 to 4096"],
        ),
        (
            "width: 12, heads: 2",
            "width: 12, head: 2",
            ["models.msa.sizes.5k.head is not an argument", "models.msa.sizes.5k.heads is missing"],
        ),
        # the file itself
        ("\nrun: *mini", "\nrun: *mino", ["plain YAML", "mino"]),
        ("\nrun: *mini", "\nrun: *mini\nrun: *sample", ["plain YAML", "duplicate key"]),
        ("  clip: 4.0", "  clip: 4.0\n  clip: 5.0", ["plain YAML", "duplicate key"]),
        (
            "  clip: 4.0",
            "  clip: !!python/object/apply:os.system ['touch pwned']",
            ["plain YAML", "python/object"],
        ),
        ("  clip: 4.0", "  clip: !exec 4.0", ["plain YAML", "exec"]),
        ("  clip: 4.0", "  clip: [", ["plain YAML"]),
        ("  clip: 4.0", "\tclip: 4.0", ["plain YAML"]),
        ("  clip: 4.0", "  clip: &again [*again]", ["params.yaml"]),
    ],
)
@pytest.mark.fault("F15")
def test_what_is_wrong_is_told_by_key(tmp_path, monkeypatch, old, new, told):
    monkeypatch.chdir(tmp_path)
    message = refused(tmp_path, changed(old, new))
    for words in told:
        assert words in message
    assert [file.name for file in tmp_path.iterdir()] == ["params.yaml"]  # nothing was executed


@pytest.mark.parametrize(
    "text, told",
    [
        ("", "valid dictionary"),
        ("- 1\n- 2\n", "valid dictionary"),
        ("just words", "valid dictionary"),
        ("a: 1\n---\nb: 2\n", "plain YAML"),
        (TRUE.encode().replace(b"SkySoft", b"Sk\xe4Soft", 1), "not UTF-8"),
        (TRUE.encode("utf-16"), "not UTF-8"),
        ("\x00", "plain YAML"),
    ],
)
@pytest.mark.fault("F15")
def test_a_file_of_another_kind_is_refused(tmp_path, text, told):
    assert told in refused(tmp_path, text)


def test_a_missing_file_names_the_remedy(tmp_path):
    with pytest.raises(ParamsError, match="project's root"):
        params.load(tmp_path / "params.yaml")


@pytest.mark.fault("F15")
def test_all_problems_are_listed_at_once(tmp_path):
    text = (
        changed("  clip: 4.0", "  clip: -1")
        .replace("  threads: 1 ", "  threads: many ")
        .replace("roll_max_deg", "roll_deg_max")
    )
    message = refused(tmp_path, text)
    assert "4 problem(s)" in message
    assert all(
        key in message
        for key in (
            "training.clip",
            "training.threads",
            "decode.roll_deg_max",
            "decode.roll_max_deg: Field required",
        )
    )


def test_names_that_do_not_meet_are_listed_at_once(tmp_path):
    text = (
        changed("    sizes: [5k]", "    sizes: [6k]")
        .replace("    seeds: [0, 1, 2]", "    seeds: [3, 3]", 1)
        .replace("width: 32", "width: 33")
    )
    message = refused(tmp_path, text)
    assert all(
        words in message
        for words in ("mini.sizes: '6k'", "mini.seeds: 3 stands", "100k.width is 33")
    )


def test_what_msa_takes_is_what_the_model_says():
    from stages.fields import models as fields
    from stages.params import checks

    msa = fields.model_class("msa")
    assert {key: set(words) for key, words in checks.MSA_WORDS.items()} == {
        key: set(msa.words[key]) for key in ("encoder", "head", "block")
    }
    assert {key: fields.LIMITS[key] for key in checks.MSA_COUNTS} == checks.MSA_COUNTS


# --- the parts that have files of their own


def parted(tmp_path, **files: str) -> params.Params:
    """The example, its models, its protocol and mini's training budget moved into files of their
    own (or others in their place)."""
    whole = params.read_yaml(Path(__file__).with_name("params_example.yaml"))
    parts = {f"models/{name}.yaml": one for name, one in whole.pop("models").items()}
    parts["protocol.yaml"] = {key: whole.pop(key) for key in ("training", "contexts")}
    parts["budgets/mini/winds.yaml"] = {
        key: whole["profiles"]["mini"].pop(key) for key in ("training", "evaluation")
    }
    for name, content in parts.items():
        place = tmp_path / "stages/params" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(
            files.get(name.replace("/", "_").removesuffix(".yaml"), json.dumps(content)),
            encoding="utf-8",
        )
    whole.pop("run")
    (tmp_path / "params.yaml").write_text(
        json.dumps(whole)[:-1] + ', "run": ' + json.dumps(whole["profiles"]["mini"]) + "}",
        encoding="utf-8",
    )
    return params.load(tmp_path / "params.yaml")


def test_parts_in_files_of_their_own_make_the_same_parameters(tmp_path):
    assert parted(tmp_path) == load(tmp_path / "stages", TRUE)


@pytest.mark.parametrize(
    ("file", "text", "told"),
    [
        ("protocol", '{"decode": {}}', "parameters stand twice"),
        ("budgets_mini_winds", '{"profile": "mini"}', "profile, also in"),
        ("budgets_mini_winds", "[1]", "these parameters are no mapping"),
        ("models_msa", "arms: [", "the file is not plain YAML"),
        ("models_msa", "{}", "models.msa.arms"),
        ("protocol", '{"trainign": 1}', "trainign"),
    ],
)
def test_a_part_that_is_no_part_is_told_with_its_file_or_key(tmp_path, file, text, told):
    with pytest.raises(ParamsError) as caught:
        parted(tmp_path, **{file: text})
    assert told in str(caught.value)


def test_a_file_where_no_parameters_belong_is_refused(tmp_path):
    parted(tmp_path)
    stray = tmp_path / "stages/params/budgets/mini.yaml"
    stray.write_text("training: {steps: 1}")
    with pytest.raises(ParamsError) as caught:
        params.load(tmp_path / "params.yaml")
    assert "no parameters belong here" in str(caught.value) and str(stray) in str(caught.value)


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("params.yaml", ""),
        ("stages/params/protocol.yaml", ""),
        ("stages/params/budgets/mini.yaml", None),
        ("stages/params/models/msa.yaml", "models.msa"),
        ("stages/params/budgets/mini/winds.yaml", "profiles.mini"),
        ("stages/params/datasets/sets.yaml", "datasets"),
        ("stages/params/models/msa.py", None),
        ("stages/params/other/msa.yaml", None),
        ("reports/models/msa.yaml", None),
    ],
)
def test_a_part_knows_its_place_in_the_whole(file, expected):
    assert params.prefix(file) == expected


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"sequences": ["laws"]}, "sequences: 'laws' is unknown"),
        ({"sequences": ["simulated"]}, "enters as frames, not as sequences"),
        ({"readings": {}}, "readings: 'product' is missing"),
        ({"acquired": ["product"]}, "acquired: 'product' is not among its datasets"),
        (
            {"learning_orders": {"step": BUDGET}},
            "learning_orders: 'step' is not in its `sequences`",
        ),
        (
            {"order_cells": [CELL | {"dataset": "step"}]},
            "order_cells: 'step' is not in its `learning_orders`",
        ),
        (
            {"order_cells": [CELL | {"arm": "backwards"}]},
            "models.sigma_gpt has no arm 'backwards' of size 'tiny'",
        ),
        ({"orders": None}, "orders: missing, but there are cells to evaluate"),
    ],
)
def test_sequences_that_do_not_fit_are_told(tmp_path, change, told):
    whole = params.read_yaml(Path(__file__).with_name("params_example.yaml"))
    whole["datasets"]["product"] = {
        "entry": "sequences",
        "kind": "sequences",
        "sequences": {"kind": "product", "seed": 0, "train": 9, "val": 9, "test": 9},
    }
    whole["models"]["sigma_gpt"] = {
        "arms": {"random": {"order": "random"}},
        "sizes": {"tiny": {"width": 16}},
    }
    mini = whole["profiles"]["mini"]
    mini |= {
        "sequences": ["product"],
        "readings": {"product": {"reader": "laws", "seed": 0}},
        "learning_orders": {"product": BUDGET},
        "orders": {"samples": 9},
        "order_cells": [CELL],
    }
    whole["run"] = mini
    assert load(tmp_path, json.dumps(whole)).run.order_cells[0].dataset == "product"
    assert told in refused(
        tmp_path, json.dumps(whole | {"profiles": whole["profiles"] | {"mini": mini | change}})
    )


def test_data_sets_of_figure_c7_differ_in_their_learning_rate_alone():
    """Else the rate would not be what its panels by rate show; a size is learned at every rate."""
    profile = params.load().profiles["sample"]
    for names in (profile.brief, profile.brief_winds):
        budgets = [profile.learning[name].model_dump() for name in names]
        told = [budget.pop("learning_rate") for budget in budgets]
        assert (
            len(set(told)) == len(told) > 1
            and all(budget == budgets[0] for budget in budgets)
            and not any(budget["rates"] for budget in budgets)
        )
        assert len({profile.sets[name] for name in names}) == 1 and all(
            name.endswith("_brief") for name in names
        )
    assert len(profile.sensitivity) == 12 and {one.size for one in profile.wind_widths} == {
        one.size for one in profile.sensitivity if one.model == "geofno"
    }


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"brief_winds": ["gusts"]}, "brief_winds: 'gusts' is not in its `problems`"),
        ({"brief_winds": ["copies", "copies"]}, "brief_winds: 'copies' stands there 2 times"),
        (
            {"wind_widths": [{"model": "msa", "arm": "shared", "size": "width_0"}]},
            "wind_widths: models.msa has no arm 'shared' of size 'width_0'",
        ),
        ({"learning": {}}, "learning: 'copies' is missing"),
    ],
)
def test_winds_of_figure_c7_that_do_not_fit_are_told(tmp_path, change, told):
    whole = params.read_yaml(Path(__file__).with_name("params_example.yaml"))
    whole["datasets"]["copies"] = {
        "entry": "sets",
        "kind": "sines",
        "sines": {"seed": 0, "frequency": None, "points": 9, "train": 9, "val": 9, "test": 9},
    }
    mini = whole["profiles"]["mini"]
    mini |= {
        "problems": ["copies"],
        "sets": {"copies": {"reader": "sines", "seed": 0, "context": 9, "targets": 9}},
        "learning": {"copies": BUDGET},
        "field_seeds": [0],
        "brief_winds": ["copies"],
    }
    whole["run"] = mini
    assert load(tmp_path, json.dumps(whole)).run.brief_winds == ("copies",)
    assert told in refused(
        tmp_path, json.dumps(whole | {"profiles": whole["profiles"] | {"mini": mini | change}})
    )


@pytest.mark.fault("F15")
def test_yaml_1_2_no_is_a_word(tmp_path):
    assert (
        load(tmp_path, changed("        licence: unknown", "        licence: no"))
        .datasets["skysoft"]
        .files["SkySoft_WindSpeed.tar.gz"]
        .licence
        == "no"
    )


@pytest.mark.fault("F15")
def test_a_stage_ends_with_2_before_any_work(tmp_path):
    (tmp_path / "params.yaml").write_text(changed("  clip: 4.0", "  clip: none"))
    root = Path(__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-m", "stages.winds.acquire", "mini", "simulated"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(root), "PATH": "", "PYTHONDONTWRITEBYTECODE": "1"},
        check=False,
    )
    assert (
        done.returncode == 2
        and "training.clip" in done.stderr
        and done.stderr.startswith("error: ")
    )
    assert [file.name for file in tmp_path.iterdir()] == ["params.yaml"]
