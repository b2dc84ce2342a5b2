"""The mirror: content decides, names and SHA256SUMS do not."""

import os
import random
from pathlib import Path

import pytest

from stages.acquisition import mirror, sources
from stages.acquisition.mirror import Mirror
from stages.errors import InputError

BODY = random.Random(5).randbytes(5000)
URL = "https://zenodo.org/files/wanted.csv"


@pytest.fixture
def folder(tmp_path):
    """Three files of the wanted size, one of them wanted, and some of other sizes."""
    for name, body in {
        "deep/er/other-name.bin": BODY,
        "a/wanted.csv": BODY[::-1],
        "b.bin": bytes(5000),
        "c.csv": b"short",
    }.items():
        path = tmp_path / "mirror" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
    return tmp_path / "mirror"


@pytest.fixture
def hashed(monkeypatch):
    """The names of the files that were hashed, in order."""
    seen = []
    true = sources.digest
    monkeypatch.setattr(
        sources, "digest", lambda path, algorithm: seen.append(path.name) or true(path, algorithm)
    )
    return seen


def test_found_by_content_under_any_name(folder, pin, tmp_path, hashed):
    assert (
        Mirror(folder).copy(pin(URL, BODY), tmp_path / "out.csv")
        == folder / "deep/er/other-name.bin"
    )
    assert (tmp_path / "out.csv").read_bytes() == BODY
    assert "c.csv" not in hashed, "only files of the right size are read"
    assert hashed[-1] == ".out.csv.copy", "the copy itself is verified"


def test_absent_means_none_and_no_trace(folder, pin, tmp_path):
    assert Mirror(folder).copy(pin(URL, BODY[:-1] + b"?"), tmp_path / "out.csv") is None
    assert Mirror(folder).copy(pin(URL, b"of no such size"), tmp_path / "out.csv") is None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mirror"]


def test_sums_speed_it_up(folder, pin, tmp_path, hashed):
    source = pin(URL, BODY)
    (folder / "SHA256SUMS").write_text(f"{source.sha256}  deep/er/other-name.bin\n")
    Mirror(folder).copy(source, tmp_path / "out.csv")
    assert hashed == ["other-name.bin", ".out.csv.copy"]


@pytest.mark.parametrize(
    "claim", ["a/wanted.csv", "c.csv", "missing", "../outside.csv", "/etc/passwd"]
)
def test_sums_are_not_believed(folder, pin, tmp_path, claim):
    (tmp_path / "outside.csv").write_bytes(BODY)
    source = pin(URL, BODY)
    (folder / "SHA256SUMS").write_text(f"garbage\n{source.sha256} *{claim}\n")
    assert Mirror(folder).copy(source, tmp_path / "out.csv") == folder / "deep/er/other-name.bin"
    assert (tmp_path / "out.csv").read_bytes() == BODY


def test_a_flipped_byte_is_never_handed_out(folder, pin, tmp_path):
    """Same size, same time stamp, right name, and SHA256SUMS still says it is fine."""
    source, path = pin(URL, BODY), folder / "deep/er/other-name.bin"
    (folder / "SHA256SUMS").write_text(f"{source.sha256}  deep/er/other-name.bin\n")
    before = path.stat()
    path.write_bytes(BODY[:77] + bytes([BODY[77] ^ 1]) + BODY[78:])
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert Mirror(folder).copy(source, tmp_path / "out.csv") is None


def test_bytes_that_change_during_the_copy_are_not_handed_out(folder, pin, tmp_path, monkeypatch):
    monkeypatch.setattr(
        mirror.shutil, "copyfileobj", lambda reader, writer, _: writer.write(reader.read()[::-1])
    )
    assert Mirror(folder).copy(pin(URL, BODY), tmp_path / "out.csv") is None
    assert not (tmp_path / "out.csv").exists()


def test_links_are_not_followed(folder, pin, tmp_path):
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "x").write_bytes(b"private!")
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "file-link").symlink_to(tmp_path / "secret" / "x")
    assert Mirror(folder).copy(pin(URL, b"private!"), tmp_path / "out.csv") is None


def test_an_unknown_size_is_found_by_name_then_content(folder, pin, tmp_path):
    import hashlib

    source = pin(
        URL,
        BODY[::-1],
        sha256=None,
        md5=hashlib.md5(BODY[::-1]).hexdigest(),
        bytes=None,
        bytes_max=10**6,
    )
    assert Mirror(folder).copy(source, tmp_path / "out.csv") == folder / "a/wanted.csv"
    assert (
        Mirror(folder).copy(
            pin(URL, BODY, sha256=None, md5="0" * 32, bytes=None, bytes_max=10**6), tmp_path / "x"
        )
        is None
    )


def test_a_mirror_that_is_not_there_is_the_users_mistake(tmp_path):
    with pytest.raises(InputError, match="TRADEWIND_MIRROR") as error:
        Mirror(tmp_path / "nowhere")
    assert error.value.exit_code == 2


def test_every_file_of_the_sample_profile_is_in_the_real_mirror(tmp_path):
    from stages import params

    root = Path(__file__).parents[2]
    real = Path(os.environ.get("TRADEWIND_MIRROR") or root.parent / "shared" / "data")
    if not real.is_dir():
        pytest.skip("the folder of real files (TRADEWIND_MIRROR or ../shared/data) is absent")
    settings, found = params.load(root / "params.yaml"), Mirror(real)
    for name in settings.profiles["sample"].datasets:
        for file, source in settings.datasets[name].files.items():
            assert found.copy(source, tmp_path / file), file
            assert (tmp_path / file).stat().st_size == source.bytes
