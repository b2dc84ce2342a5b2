"""params.yaml: everything wrong is told at once, by key, with what is allowed and the nearest
name; nothing is executed."""

import subprocess
import sys
from pathlib import Path

import pytest
from params_changed import TRUE, changed, load, refused

from stages import params
from stages.errors import ParamsError

MSA = "{dataset: simulated, model: msa, arm: shared, size: 5k, seed: 0}"


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
            ["1 problem(s)", "'simulatd' is unknown", "did you mean 'simulated'"],
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
        (
            "      evaluated: [simulated]",
            "      evaluated: simulated",
            ["cells.wind_nowcast.mini.evaluated", "valid tuple"],
        ),
        # out of range, not finite, huge
        ("  clip: 4.0", "  clip: 0", ["training.clip", "greater than 0"]),
        ("  clip: 4.0", "  clip: -.inf", ["training.clip"]),
        ("  clip: 4.0", "  clip: .nan", ["training.clip"]),
        ("  clip: 4.0", "  clip: 1e999", ["training.clip"]),
        ("  seed: 0\n", f"  seed: {10**40}\n", ["training.seed"]),
        ("  seed: 0\n", f"  seed: {'9' * 5000}\n", ["params.yaml"]),  # longer than Python converts
        (
            "size: 5k, seed: 0}",
            "size: 5k, seed: -1}",
            ["cells.mini-simulated-msa-shared-5k-s0.seed", "greater than or equal to 0"],
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
            "size: 5k, seed: 0}",
            "size: '5k; touch pwned', seed: 0}",
            ["mini-simulated-msa-shared-5k-s0.size", "match pattern"],
        ),
        ("size: 5k, seed: 0}", "size: '$(id)', seed: 0}", ["msa-shared-5k-s0.size"]),
        ("size: 5k, seed: 0}", 'size: "5k\\n", seed: 0}', ["msa-shared-5k-s0.size"]),
        (
            "        mini-simulated-kernel:",
            "        mini-simulated-$(id):",
            ["cells.wind_nowcast.mini.plain.mini-simulated-$(id)", "match pattern"],
        ),
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
            "size: 5k, seed: 0}",
            "size: 5kk, seed: 0}",
            ["s0: msa has no size '5kk'", "did you mean '5k'"],
        ),
        (
            "arm: shared, size: 5k, seed: 0}",
            "arm: shraed, size: 5k, seed: 0}",
            ["s0: msa has no arm 'shraed'", "did you mean 'shared'"],
        ),
        (
            "{dataset: simulated, model: kernel}",
            "{dataset: simulatd, model: kernle}",
            [
                "wind_nowcast/cells.yaml: mini.plain.mini-simulated-kernel: 'simulatd' is not a",
                "there is no model 'kernle'",
                "did you mean 'kernel'",
            ],
        ),
        (
            "size: 5k, seed: 0}",
            "size: 5k, seed: 2}",
            ["its id must be 'mini-simulated-msa-shared-5k-s2'"],
        ),
        (
            "size: 5k, seed: 0}",
            "size: 20k, seed: 1, arm_seed: 3}",
            ["mini-simulated-msa-shared-5k-s0.arm_seed", "not permitted"],
        ),
        (
            "mini-simulated-kernel: {dataset: simulated, model: kernel}",
            f"mini-simulated-kernel: {MSA}",
            [
                "plain.mini-simulated-kernel: its id must be 'mini-simulated-msa-shared-5k-s0'",
                "cells.mini-simulated-msa-shared-5k-s0: the cell stands there twice",
            ],
        ),
        (
            "training: {learning_rate: 0.001}",
            "training: {learning_rate: [0.001]}",
            ["mini-simulated-msa-gaussian-20k-s1.training.learning_rate"],
        ),
        ("training: {learning_rate: 0.001}", "training: {}", ["s1.training", "at least 1"]),
        (
            "      evaluated: [simulated]",
            "      evaluated: [simulated, simulated]",
            ["mini.evaluated: 'simulated' stands there 2 times"],
        ),
        (
            "      evaluated: [simulated]",
            "      evaluated: [skysoft]",
            [
                "mini.evaluated: 'skysoft' is not a data set of the profile",
                "no cell of 'skysoft' is trained",
                "mini.evaluated: 'simulated' is missing, of which cells are trained",
            ],
        ),
        (
            "  challengers: [wind_nowcast/msa-shared-5k-s0]",
            "  challengers: [wind_nowcast/msa-shared-5k-s4]",
            ["retraining.challengers[0]: 'wind_nowcast/msa-shared-5k-s4' is not trained of"],
        ),
        (
            "  challengers: [wind_nowcast/msa-shared-5k-s0]",
            "  challengers: [wind_nowcast/kernel, wind_nowcast/kernel]",
            ["retraining.challengers: 'wind_nowcast/kernel' stands there 2 times"],
        ),
        ("  first_against: wind_nowcast/kernel", "  first_against: x", ["first_against"]),
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
