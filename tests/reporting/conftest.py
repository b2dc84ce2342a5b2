"""What the tests of the audit share: the small project's commands are run by servers (as `verify
--all` has them) that outlive an audit, one for the same sources, so that the libraries are loaded
once and not for every command.

Processes of their own, as an audit of one number has them, run in the files named here, in
tests/audit and wherever an audit is a process itself.
"""

import hashlib
import shutil
import tempfile
from pathlib import Path
from threading import Lock

import pytest

from stages.audit import again, laid, loading, remade, rerun, served

ALONE = ("test_audit", "test_audit_real", "test_other_machine")
NAMES = (*served.CHAIN, "stages.records", "stages.tables.gather", "safetensors.numpy")
VOLATILE = ("GIT_", "PYTEST_")  # what no command of a stage reads
MOST = 4

_servers: dict[str, "Kept"] = {}
_lock = Lock()


class Kept(served.Server):
    """A server that the next audit of the same sources asks, too: it has a copy of them. The
    session's end ends it."""

    def __init__(self, folder: Path):
        self.copy = tempfile.TemporaryDirectory(prefix="kept-")
        shutil.copytree(folder / "stages", Path(self.copy.name, "stages"))
        super().__init__(Path(self.copy.name), NAMES)

    def close(self) -> None:
        """Nothing: another one asks it."""

    def end(self) -> None:
        """End it."""
        super().close()
        self.copy.cleanup()


def kept(folder: Path, _: object = None) -> Kept:
    """The server of the sources, and of the environment, with which a project is laid out."""
    steady = [one for one in loading.environment().items() if not one[0].startswith(VOLATILE)]
    files = sorted(file for file in (folder / "stages").rglob("*") if file.is_file())
    told = [(file.relative_to(folder), file.read_bytes()) for file in files]
    key = hashlib.sha256(repr([sorted(steady), told]).encode()).hexdigest()
    with _lock:
        if key not in _servers:
            if len(_servers) == MOST:
                _servers.pop(next(iter(_servers))).end()
            _servers[key] = Kept(folder)
        return _servers[key]


@pytest.fixture(autouse=True)
def servers_are_kept(request, monkeypatch):
    """Commands where a project is laid out are run by kept servers."""
    if request.path.stem in ALONE:
        return
    run = laid.Laid.run

    def served_by(self, command, *more, **how) -> None:
        if self.server is None or isinstance(self.server, Kept):
            self.server = kept(self.folder)
        run(self, command, *more, **how)

    monkeypatch.setattr(laid.Laid, "run", served_by)
    for module in (again, remade, rerun):
        monkeypatch.setattr(module, "Server", kept)


@pytest.fixture(autouse=True, scope="session")
def servers_end(tmp_path_factory):
    """None is left behind. What the small project's evaluations say stands in the file TOY."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TOY", str(tmp_path_factory.getbasetemp() / "toy.json"))
        yield
    for one in _servers.values():
        one.end()
