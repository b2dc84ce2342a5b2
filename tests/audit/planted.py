"""What attacks plant between a commit and what runs: whatever Python or git lets stand there."""

import os
import py_compile
from collections.abc import Callable
from pathlib import Path

import real
from doctored import CODE, DARCY

MARK = "it ran"
TABLE = "reports/sparse_fields/mini/metrics.json"


def spy(root: Path, name: str = "spied") -> str:
    """Python that leaves a mark when it runs."""
    return f"open({str(root / name)!r}, 'w').write({MARK!r})\n"


def bytecode(root: Path) -> None:
    """Other bytecode in the cache of a module, of its very source's time and size."""
    source = root / CODE
    other = root / "other.py"
    other.write_text(spy(root) + source.read_text())
    code = Path(py_compile.compile(str(other), str(root / "other.pyc"), doraise=True)).read_bytes()
    stat = source.stat()
    head = code[:8] + int(stat.st_mtime).to_bytes(4, "little") + stat.st_size.to_bytes(4, "little")
    place = root / "stages/fields/__pycache__/scores.cpython-311.pyc"
    real.write(root, place.relative_to(root).as_posix(), head + code[16:])
    other.unlink()
    (root / "other.pyc").unlink()


def kernels(root: Path) -> None:
    """What numba compiled, replaced: an index is a pickle, which runs what it names."""
    evil = b"cbuiltins\nexec\n(V" + spy(root).replace("\n", "").encode() + b"\ntR."
    for source in sorted((root / "stages/layers/kernels").glob("*.py")):
        place = f"stages/layers/kernels/__pycache__/{source.stem}.x-1.py311.nbi"
        real.write(root, place, evil)
        real.write(root, place.replace(".nbi", ".1.nbc"), evil)


def site(root: Path) -> None:
    """Modules that Python imports when it starts, in a folder of PYTHONPATH."""
    for name in ("sitecustomize", "usercustomize", "startup"):
        real.write(root, f".work/led/{name}.py", spy(root))
    os.environ["PYTHONPATH"] = str(root / ".work/led")
    os.environ["PYTHONSTARTUP"] = str(root / ".work/led/startup.py")
    os.environ["NUMBA_CACHE_DIR"] = str(root / ".work/led")


def shadow(path: str, committed: bool = True) -> Callable[[Path], None]:
    """A file that Python loads in place of another."""

    def forge(root: Path) -> None:
        real.write(root, path, spy(root))
        if committed:
            real.commit(root)

    return forge


def replaced(root: Path) -> None:
    """Another object in the place of a source's (`git replace`)."""
    blob = real.git(root, "rev-parse", f"HEAD:{CODE}").strip()
    real.write(root, ".git/other", spy(root) + (root / CODE).read_text())
    other = real.git(root, "hash-object", "-w", "--no-filters", ".git/other").strip()
    real.git(root, "replace", blob, other)


def grafted(root: Path) -> None:
    """HEAD's very commit replaced by one of another tree."""
    tree = real.git(root, "rev-parse", "HEAD~3^{tree}").strip()
    other = real.git(root, "commit-tree", tree, "-m", "other").strip()
    real.git(root, "replace", "HEAD", other)


def filtered(root: Path) -> None:
    """An edited table that a filter of attributes hides from git."""
    table = root / "reports/sparse_fields/mini/metrics.json"
    (root / ".git/info").mkdir(exist_ok=True)
    real.write(root, ".git/info/attributes", "*.json filter=hide\n")
    real.git(root, "config", "filter.hide.clean", "git show HEAD:%f")
    real.write(root, table.relative_to(root).as_posix(), table.read_text() + "\n")


def unseen(root: Path) -> None:
    """An edited source that git is told not to look at."""
    real.git(root, "update-index", "--skip-worktree", CODE)
    real.write(root, CODE, (root / CODE).read_text() + "\nEDITED = True\n")


def above(root: Path) -> None:
    """A commit of another table, which holds what stands here one folder below, and a working tree
    that begins one folder above: what stands here were the commit's."""
    honest = real.git(root, "rev-parse", "HEAD^{tree}").strip()
    text = (root / TABLE).read_text()
    real.write(root, TABLE, text.replace("0.", "0.0", 1))
    real.commit(root)
    real.git(root, "read-tree", f"--prefix={root.name}/", honest)
    tree = real.git(root, "write-tree").strip()
    name = real.git(root, "commit-tree", tree, "-p", "HEAD", "-m", "two").strip()
    real.git(root, "update-ref", "HEAD", name)
    real.git(root, "config", "core.worktree", str(root.parent))
    real.write(root, TABLE, text)


def linked(root: Path) -> None:
    """Prepared data that lie outside of the project, under a link."""
    outside = root.parent / "outside"
    outside.mkdir()
    (root / DARCY).rename(outside / "sets.safetensors")
    (root / DARCY).symlink_to(outside / "sets.safetensors")


def programs(root: Path) -> None:
    """Programs that git runs for whoever reads a repository: a verifier of the signature that HEAD
    now has, the transport of an object that is promised."""
    evil = root / ".git/evil"
    real.write(root, ".git/evil", f"#!/bin/sh\necho ran >> '{root / 'spied'}'\n")
    evil.chmod(0o755)
    head, _, words = real.git(root, "cat-file", "commit", "HEAD").partition("\n\n")
    signed = f"{head}\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----"
    real.write(root, ".git/signed", f"{signed}\n\n{words}")
    name = real.git(root, "hash-object", "-t", "commit", "-w", ".git/signed").strip()
    real.git(root, "update-ref", "HEAD", name)
    for key, value in (
        ("log.showSignature", "true"),
        ("gpg.program", str(evil)),
        ("protocol.ext.allow", "always"),
        ("remote.spy.url", f"ext::{evil}"),
        ("remote.spy.promisor", "true"),
        ("core.repositoryFormatVersion", "1"),
        ("extensions.partialClone", "spy"),
    ):
        real.git(root, "config", key, value)
