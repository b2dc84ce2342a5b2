"""A release is a function of its commit, holds no data that may not be passed on, and whatever is
changed in it is found, by name.

The toy project of audit_project.py with what a release needs beside it. Each forgery changes one
thing in a sound bundle; the harder ones mend the manifest, and then the commit, so that only the
link which the forger forgot can give him away.
"""

import hashlib
import json
import shutil
import struct
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import audit_project
import pytest
from audit_project import DATA, TABLE, build, commit, edit, run
from bundles import HOME, furnish, members, mend_commit, mend_manifest, packed, verdict

from stages import exports, files
from stages.audit.finding import Problem
from stages.errors import DataError, InputError, TradewindError
from stages.exports import bundle, recheck
from stages.exports.recheck import main as verify_main
from stages.exports.tree import commit_name, of_commit

RECORD = "reports/wind_nowcast/mini/records/tabulate.json"


@pytest.fixture(autouse=True)
def by_its_own_code(monkeypatch):
    """The small project's stages are taken for those that run here, so that its tables and pages
    are made again by them."""
    true = recheck.same_code
    own = "stages/"
    monkeypatch.setattr(recheck, "same_code", lambda tree, at: at == own or true(tree, at))


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """A project and its bundle."""
    with (
        pytest.MonkeyPatch.context() as patch
    ):  # without the file that the audit's own tests plant, which no record made
        planted = audit_project.project_files()
        patch.setattr(
            audit_project,
            "project_files",
            lambda: {
                name: text for name, text in planted.items() if "/prepared/other/" not in name
            },
        )
        folder = build(furnish(tmp_path_factory.mktemp("release")))
    acquired = folder / DATA / "records/simulated.acquire.json"
    edit(
        acquired,
        '"datasets": {',
        '"dataset": {"kind": "simulate", "entry": "frames", "simulate": {"seed": 20260}}, '
        '"datasets": {',
    )
    run(folder, sys.executable, "-m", "dvc", "commit", "-q", "-f")
    commit(folder)
    return folder, exports.release(folder / ".work/out", folder)


@pytest.fixture
def project(released, tmp_path):
    return Path(shutil.copytree(released[0], tmp_path / "project", symlinks=True))


def test_a_sound_bundle_passes_without_git_dvc_or_the_project(
    released, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "")
    path = Path(shutil.copy(released[1], tmp_path / "bundle.zip"))
    before = sorted(tmp_path.iterdir())
    assert verify_main(str(path)) == 0 and "PASS" in capsys.readouterr().out
    assert sorted(tmp_path.iterdir()) == before, "nothing is unpacked"


def test_the_bytes_are_the_commits_alone(released, tmp_path):
    """Another clone, another folder, other time stamps, another umask: the same bytes."""
    clone = tmp_path / "elsewhere"
    run(tmp_path, "git", "clone", "-q", str(released[0]), str(clone))
    for file in clone.rglob("*.json"):
        file.touch()
    again = exports.release(tmp_path / "out", clone)
    assert again.name == released[1].name and again.read_bytes() == released[1].read_bytes()


def test_the_commits_files_are_all_there_with_git_own_names(released):
    folder, path = released
    tree, content = of_commit(folder), members(path)
    assert {name: content[name] for name in tree.modes} == dict(tree.files) and commit_name(
        tree.commit
    ) == tree.commit.name
    assert {
        "release/CITATION.cff",
        "ro-crate-metadata.json",
        "release/licences.md",
        "release/croissant/mini/simulated.json",
        RECORD,
        TABLE,
    } <= content.keys()
    assert not any(
        name.startswith(f"{DATA}/raw/") and not name.endswith(".gitignore") for name in content
    ), "data are not passed on unasked"


def test_with_data_the_simulated_sets_come_along_and_no_others(released, tmp_path):
    path = exports.release(tmp_path, released[0], with_data=True)
    raw = {name for name in members(path) if name.startswith("data/mini/raw/simulated/")}
    assert (
        path.name.endswith("-data.zip")
        and "data/mini/raw/simulated/frames_00.csv" in raw
        and verdict(path)[0] == "PASS"
    )
    content = members(path)
    content["data/mini/raw/simulated/frames_00.csv"] += b"\n"
    mend_manifest(content)
    assert (
        "frames_00.csv: it is no output of a simulated data set, or other bytes"
        in verdict(packed(tmp_path / "x.zip", content))[1]
    )


@pytest.mark.parametrize(
    "name",
    [
        TABLE,
        RECORD,
        "stages/training/__init__.py",
        "dvc.lock",
        "params.yaml",
        "release/CITATION.cff",
        "release/COMMIT",
    ],
)
def test_a_flipped_bit_is_found_and_named_with_and_without_mending_the_manifest(
    released, tmp_path, name
):
    for mend in (False, True):
        content = members(released[1])
        body = bytearray(content[name])
        body[len(body) // 2] ^= 1
        content[name] = bytes(body)
        if mend:
            mend_manifest(content)
        try:
            found, told = verdict(packed(tmp_path / f"{mend}.zip", content))
            assert found == "FAIL" and (name in told if not mend else "FAIL" in told)
        except TradewindError as error:
            assert name == "release/COMMIT" and "commit" in str(error)


def test_a_damaged_byte_of_the_container_is_told_by_the_members_name(released, tmp_path):
    raw = bytearray(released[1].read_bytes())
    at = raw.index(members(released[1])[TABLE])
    raw[at + 5] ^= 1
    (tmp_path / "x.zip").write_bytes(raw)
    with pytest.raises(DataError, match=f"refused(?s:.)*{TABLE}(?s:.)*damaged"):
        recheck.verify(tmp_path / "x.zip")


@pytest.mark.parametrize("mend", [False, True])
def test_a_member_too_many_or_too_few_is_found(released, tmp_path, mend):
    less, more = members(released[1]), members(released[1])
    del less[TABLE]
    more["stages/extra.py"] = b"print()\n"
    for content, told in ((less, TABLE), (more, "stages/extra.py")):
        if mend:
            mend_manifest(content)
        found, text = verdict(packed(tmp_path / "x.zip", content))
        assert found == "FAIL" and ("a file is not the commit's" in text if mend else told in text)


def test_an_edited_metric_fails_though_manifest_and_commit_agree(released, tmp_path):
    content = members(released[1])
    table = json.loads(content[TABLE])
    table["cells"]["simulated/knn"]["metrics"]["rmse_component_kn"]["value"] /= 2
    content[TABLE] = files.json_text(table).encode()
    mend_manifest(content)
    mend_commit(content)
    found, text = verdict(packed(tmp_path / "x.zip", content))
    assert (
        found == "FAIL"
        and f"{TABLE}: its SHA-256 is" in text
        and "a file is not the commit's" not in text
    )
    record = json.loads(content[RECORD])  # and now the record as well: dvc.lock knows better
    record["outputs"][TABLE] = {
        "sha256": hashlib.sha256(content[TABLE]).hexdigest(),
        "bytes": len(content[TABLE]),
    }
    content[RECORD] = files.json_text(record).encode()
    mend_manifest(content)
    mend_commit(content)
    found, text = verdict(packed(tmp_path / "y.zip", content))
    assert found == "FAIL" and f"{TABLE}: its MD5 is" in text and "edited by hand?" in text
    with pytest.raises(InputError, match="no commit's name"):
        verify_main(str(tmp_path / "y.zip"), "HEAD")


def test_a_bundle_of_another_commit_than_was_cited_fails(released):
    name = of_commit(released[0]).commit.name
    assert recheck.verify(released[1], name[:10]).verdict == "PASS"
    assert recheck.verify(released[1], "0" * 40).verdict == "FAIL"
    for cited in (None, name[:10]):
        text = recheck.verify(released[1], cited).render()
        assert ("no commit was named" in text) == (cited is None) and text.endswith("PASS")


def test_a_re_labelled_seed_and_a_swapped_hash_fail_by_name(released, tmp_path):
    train = "reports/wind_nowcast/mini/records/simulated.msa-shared-5k-s1.train.json"
    for change, told in (
        (lambda record: record.update(seed=7), "the cell is named for seed 1"),
        (
            lambda record: record["code"].update(digest="0" * 64),
            "code digest is not that of its list",
        ),
        (
            lambda record: (
                record["inputs"].popitem()[1].update(sha256="0" * 64)
                or record["inputs"].update({"data/unknown": {"sha256": "0", "bytes": 1}})
            ),
            "which no record made",
        ),
        (lambda record: next(iter(record["outputs"].values())).update(sha256="0" * 64), "stale"),
    ):
        content = members(released[1])
        record = json.loads(content[train])
        change(record)
        content[train] = files.json_text(record).encode()
        mend_manifest(content)
        mend_commit(content)
        found, text = verdict(packed(tmp_path / "x.zip", content))
        assert found == "FAIL" and told in text


@pytest.mark.parametrize(
    "name",
    ["../evil", "/etc/evil", "a/../../evil", "a\\evil", "C:evil", "a//evil", "./evil", "a\x01evil"],
)
def test_a_name_that_leads_outside_is_refused(released, tmp_path, name):
    content = {**members(released[1]), name: b"x"}
    with pytest.raises(DataError, match="refused"):
        recheck.verify(packed(tmp_path / "x.zip", content))
    assert not (tmp_path.parent / "evil").exists()


def test_links_twins_bombs_and_overlaps_are_refused(released, tmp_path):
    content = members(released[1])
    for made, told in (
        (
            packed(tmp_path / "a.zip", {**content, "link": b"/etc/passwd"}, {"link": 0o120777}),
            "a link, a folder or a device",
        ),
        (packed(tmp_path / "b.zip", {**content, TABLE.upper(): b"x"}), "the name comes twice"),
        (
            packed(
                tmp_path / "c.zip",
                {**content, "bomb": b"\0" * (1 << 24)},
                method=zipfile.ZIP_DEFLATED,
            ),
            "it is packed",
        ),
    ):
        with pytest.raises(DataError, match=told):
            recheck.verify(made)
    raw = bytearray(
        released[1].read_bytes()
    )  # every entry of the directory claims four gigabytes less one, unpacked and packed
    at = raw.index(b"PK\x01\x02", len(raw) - len(content) * 300)
    raw[at + 20 : at + 28] = struct.pack("<II", 0xFFFFFFF0, 0xFFFFFFF0)
    (tmp_path / "d.zip").write_bytes(raw)
    with pytest.raises(DataError, match="more than the bundle holds"):
        recheck.verify(tmp_path / "d.zip")


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"", InputError),
        (b"not a zip" * 100, InputError),  # another file was named
        (b"PK", DataError),
        (b"PK\x05\x06" + b"\0" * 18, DataError),
    ],
)
def test_what_is_no_bundle_is_a_typed_error(tmp_path, content, error):
    (tmp_path / "x.zip").write_bytes(content)
    with pytest.raises(error):
        recheck.verify(tmp_path / "x.zip")
    for path in (tmp_path / "missing.zip", tmp_path):
        with pytest.raises(InputError):
            recheck.verify(path)


@pytest.mark.parametrize(
    "manifest",
    [
        b"{",
        b"[]",
        b'{"format": "tradewind release 1"}',
        b'{"format": 1, "format": 2}',
        b'{"format": NaN}',
    ],
)
def test_a_manifest_that_no_release_wrote_is_a_typed_error(released, tmp_path, manifest):
    content = members(released[1]) | {bundle.MANIFEST: manifest}
    with pytest.raises(DataError, match="manifest"):
        recheck.verify(packed(tmp_path / "x.zip", content))


def test_another_version_of_the_exports_is_inconclusive_not_wrong(released, tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[verify_main.__module__], "HOME", tmp_path)
    for file in (HOME / "stages/exports").glob("*.py"):
        (tmp_path / "exports").mkdir(parents=True, exist_ok=True)
        (tmp_path / "exports" / file.name).write_text("another\n")
    assert recheck.verify(released[1]).exit_code == 3


def test_a_dirty_tree_is_refused_by_name(project, tmp_path):
    (project / "stages/new.py").write_text("new\n")
    with pytest.raises(InputError, match="stages/new.py"):
        exports.release(tmp_path / "out", project)
    (project / "stages/new.py").unlink()
    run(project, "git", "update-index", "--assume-unchanged", "params.yaml")
    edit(project / "params.yaml", "bootstrap: 1000", "bootstrap: 1001")
    with pytest.raises(InputError, match="params.yaml"):
        exports.release(tmp_path / "out", project)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("file", "old", "new", "told"),
    [
        ("stages/training/__init__.py", "training", "Training", "the code of train"),
        (
            "params.yaml",
            "bootstrap: 1000",
            "bootstrap: 1001",
            "was run with another profiles.mini.evaluation",
        ),
        ("constraints.txt", "2.4.6", "2.4.7", "another constraints.txt"),
        (
            "data/published/thesis_table_1_2.csv",
            "8.1",
            "8.2",
            "data/published/thesis_table_1_2.csv",
        ),
    ],
)
def test_stale_results_are_refused_by_name(project, tmp_path, file, old, new, told):
    edit(project / file, old, new)
    commit(project)
    with pytest.raises(InputError, match="stale") as error:
        exports.release(tmp_path / "out", project)
    assert told in str(error.value) and not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("path", "remedy"),
    [
        ("reports/winds/sample/page.html", "`make repro PROFILE=sample`"),
        ("reports/summary-mini.json", "`make repro PROFILE=mini`"),
        ("CITATION.cff", "`make repro`"),
    ],
)
def test_what_is_stale_names_the_profile_that_makes_it_again(path, remedy):
    tables = dict.fromkeys(f"reports/winds/{name}/metrics.json" for name in ("mini", "sample"))
    tree = SimpleNamespace(files=tables)
    assert bundle.again(tree, [Problem("FAIL", path, "stale")]) == remedy


def test_no_room_and_a_kill_leave_nothing_behind(project, tmp_path, monkeypatch):
    monkeypatch.setattr(
        bundle.shutil, "disk_usage", lambda place: shutil._ntuple_diskusage(10, 9, 1000)
    )
    with pytest.raises(InputError, match="disk does not hold the bundle"):
        exports.release(tmp_path / "out", project)
    monkeypatch.undo()
    monkeypatch.setattr(bundle, "fault", lambda point: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        exports.release(tmp_path / "out", project)
    assert list((tmp_path / "out").iterdir()) == []


def test_outside_a_repository_or_below_its_root_there_is_no_release(project, tmp_path):
    for folder in (tmp_path, project / "stages"):
        with pytest.raises(InputError):
            exports.release(tmp_path / "out", folder)
