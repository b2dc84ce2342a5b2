"""Law: flip any bit of any byte of any file of a number's chain, keep the time stamp, and
`--verify hash` fails and names the file."""

import os
import shutil
from pathlib import Path

import audit_project
import pytest
from audit_project import template  # noqa: F401 (a fixture)
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from stages.audit.verify import audit

LAW = {
    "deadline": None,
    "derandomize": True,
    "suppress_health_check": [HealthCheck.too_slow],
    "phases": [Phase.explicit, Phase.generate],
}


@pytest.fixture(scope="module")
def project(template, tmp_path_factory):
    return Path(
        shutil.copytree(template, tmp_path_factory.mktemp("bytes") / "project", symlinks=True)
    )


@pytest.fixture(scope="module")
def files(project):
    found = audit(audit_project.NUMBER, "hash", project)
    assert found.verdict == "PASS"
    # records, sources, table, claims, figures, validation, and every data file from raw to
    # predictions
    assert len(found.files) == 28
    return found.files


@settings(max_examples=30, **LAW)
@given(which=st.integers(0, 10**6), where=st.integers(0, 10**6), bit=st.integers(0, 7))
@example(which=0, where=0, bit=0)
@pytest.mark.fault("F10")
def test_any_flipped_bit_in_any_file_of_the_chain_is_caught(project, files, which, where, bit):
    path = files[which % len(files)]
    file = project / path
    before, stat = file.read_bytes(), file.stat()
    damaged = bytearray(before)
    damaged[where % len(damaged)] ^= 1 << bit
    try:
        file.write_bytes(damaged)
        os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        found = audit(audit_project.NUMBER, "hash", project)
        assert found.verdict == "FAIL"
        assert path in {problem.path for problem in found.problems}
    finally:
        file.write_bytes(before)


@settings(max_examples=12, **LAW)
@given(which=st.integers(0, 10**6), where=st.integers(0, 10**6), bit=st.integers(0, 7))
@pytest.mark.fault("F10")
def test_any_flipped_bit_in_the_chains_cache_objects_is_caught(project, files, which, where, bit):
    wanted = {(project / path).read_bytes() for path in files}
    objects = sorted(
        o for o in (project / ".dvc/cache/files/md5").glob("??/*") if o.read_bytes() in wanted
    )
    assert (
        len(objects) == 26
    )  # DVC keeps a copy even of those outputs that are in git; the two sources are no outputs
    file = objects[which % len(objects)]
    before = file.read_bytes()
    damaged = bytearray(before)
    damaged[where % len(damaged)] ^= 1 << bit
    try:
        file.chmod(0o644)
        file.write_bytes(damaged)
        file.chmod(0o444)
        assert audit(audit_project.NUMBER, "hash", project).verdict == "FAIL"
    finally:
        file.chmod(0o644)
        file.write_bytes(before)
        file.chmod(0o444)
