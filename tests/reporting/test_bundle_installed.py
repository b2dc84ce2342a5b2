"""A bundle's code against code that is installed: a wheel calls the package otherwise."""

from types import SimpleNamespace

from stages.exports import recheck


def test_the_same_code_under_another_name_is_the_same(tmp_path, monkeypatch):
    package = tmp_path / "tradewind"
    sources = {
        "stages/cli.py": b"1",
        "stages/exports/__init__.py": b"",
        "stages/exports/a.py": b"2",
    }
    inside = {
        "stages/flows/repro.py": b"3",
        "stages/project/params.py": b"4",
    }  # a wheel's own places
    for name, text in (sources | inside).items():
        file = package / name.partition("/")[2]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text)
    monkeypatch.setattr(recheck, "HOME", package)
    bundle = SimpleNamespace(modes=dict.fromkeys(sources), files=dict(sources))
    assert recheck.same_code(bundle, recheck.SOURCES) and recheck.same_code(bundle, recheck.OURS)
    (package / "exports/a.py").write_bytes(b"another")
    assert not recheck.same_code(bundle, recheck.OURS)
    (package / "exports/a.py").unlink()
    assert not recheck.same_code(bundle, recheck.OURS)
