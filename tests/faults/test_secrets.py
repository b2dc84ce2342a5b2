"""Secrets planted in the environment and in the home folder appear in no output, log, lock, record
or page of a whole run (F20).

A key of the Climate Data Store, passwords in URLs, access tokens: the whole laboratory is built
anew with them set, then audited, its verbs asked, its failures provoked; every file below the
folder and everything that was said is searched for each of them.
"""

import base64
import sys

import lab
import pytest

WORDS = {
    "CDSAPI_KEY": "3f0c6a52-9d1e-4b7a-8c55-5e0f1d2c3b4a",
    "PREFECT_API_KEY": "pnu_S3cretS3cretS3cretS3cretS3cretS3cr",
    "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMIK7MDENGbPxRfiCYplantedkey",
    "GITHUB_TOKEN": "ghp_PlantedPlantedPlantedPlantedPlant1",
    "HF_TOKEN": "hf_" + "PlantedPlantedPlantedPlanted12",
    "PREFECT_SERVER_API_AUTH_STRING": "keeper:Pl4nted-Word-Of-The-Server",
}
URLS = {
    "TRADEWIND_SWEEPS_URL": "postgresql://me:Sw33p-Planted@127.0.0.1:1/base",
    "HTTPS_PROXY": "http://me:Pr0xy-Planted@127.0.0.1:1",
    "PREFECT_API_DATABASE_CONNECTION_URL": "postgresql://me:B4se-Planted@127.0.0.1:1/base",
    "CDSAPI_URL": "https://me:St0re-Planted@cds.climate.copernicus.eu/api",
}
SECRETS = (
    *WORDS.values(),
    *(url.split(":")[2].split("@")[0] for url in URLS.values()),
    "H0me-Planted-Key-7",
)


def found_in(content: bytes) -> list[str]:
    """The secrets in some bytes, plain or in base64."""
    return [
        word
        for word in SECRETS
        if word.encode() in content or base64.b64encode(word.encode()).rstrip(b"=") in content
    ]


def test_the_search_finds_what_it_looks_for():
    assert found_in(b"x" + WORDS["GITHUB_TOKEN"].encode()) == [WORDS["GITHUB_TOKEN"]] and found_in(
        base64.b64encode(b"H0me-Planted-Key-7")
    ) == ["H0me-Planted-Key-7"]
    assert found_in(b"nothing") == [] and len(set(SECRETS)) == len(WORDS) + len(URLS) + 1


@pytest.mark.slow_fault
@pytest.mark.fault("F20")
def test_no_planted_secret_appears_in_any_file_or_output_of_a_whole_run(tmp_path):
    (home := tmp_path / "home").mkdir()
    (home / ".cdsapirc").write_text(
        "url: https://cds.climate.copernicus.eu/api\nkey: H0me-Planted-Key-7\n"
    )
    (home / ".netrc").write_text("machine zenodo.org login me password H0me-Planted-Key-7\n")
    more = {**WORDS, **URLS, "HOME": str(home), "TRADEWIND_MIRROR": ""}
    folder, said = lab.settle(tmp_path / "lab"), []
    python = sys.executable

    def run(*words, **extra):
        return said.append(lab.call(folder, *words, **more | extra)) or said[-1]

    lab.sound(run(python, "-m", "dvc", "repro", "-v"))
    lab.commit(folder)
    lab.sound(run(python, "-m", "stages.cli", "audit", lab.NUMBER, "--verify", "hash"))
    for words in (
        ("stages.cli", "doctor"),
        ("stages.cli", "impact", "data/mini/raw/gp_wind/winds.csv"),
        ("stages.winds.sweep", "wind_baselines", "mini", "gp_wind", "knn_tnn"),
        ("stages.winds.acquire", "sample", "hour_winds"),
        ("flows.schedule", "--host", "0.0.0.0", "--cron", "never"),
        ("stages.winds.train", "wind_baselines", "mini", "nothing", "persistence"),
    ):
        run(
            python,
            "-m",
            *words,
            TRADEWIND_MIRROR=str(tmp_path / "absent") if "sample" in words else "",
        )
    run(
        python,
        "-m",
        "stages.winds.train",
        "wind_baselines",
        "mini",
        "gp_wind",
        "persistence",
        FAULT="before_record:1",
    )
    assert sum(done.returncode != 0 for done in said) >= 4, "failures were provoked too"
    assert [found_in(done.stdout.encode()) for done in said if found_in(done.stdout.encode())] == []
    everything = [file for file in folder.rglob("*") if file.is_file() and not file.is_symlink()]
    assert len(everything) > 300 and {file.name for file in everything} >= {
        "dvc.lock",
        "index.html",
        "durations.jsonl",
        "tabulate.json",
    }
    assert {
        file.relative_to(folder).as_posix(): found
        for file in everything
        if (found := found_in(file.read_bytes()))
    } == {}
