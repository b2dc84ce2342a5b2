"""Checks of the working copy: parameters, git, and DVC with its cache, its remotes and its lock
files.

DVC is asked through its command line. A remote is named with the part of its URL that is no secret,
and a secret that stands in a configuration file under git is told by its name.
"""

import json
import os
import re

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from stages import params
from stages.doctor.finding import FAIL, OK, WARN, Finding, Place
from stages.doctor.machine import existing
from stages.errors import TradewindError

MARKS = re.compile(r"(?m)^(?:<{7} |>{7} |={7}$)")
KEYS = re.compile(
    r"(?im)^\s*(\w*(?:password|secret|token|passphrase|account_key|connection_string|credential)"
    r"\w*)\s*=\s*\S"
)
IN_URL = re.compile(r"(?m)^\s*(url)\s*=\s*\S+://[^/\s]*:[^/\s]*@")


def parameters(place: Place) -> Finding:
    """params.yaml against its schema."""
    try:
        settings = params.load(place.root / "params.yaml")
    except TradewindError as error:
        return Finding(
            "parameters", FAIL, str(error), "mend params.yaml; run from the project's root"
        )
    return Finding("parameters", OK, f"params.yaml is sound; profile {settings.run.profile}")


def git(place: Place) -> list[Finding]:
    """A repository, how many files differ from the last commit, and somebody to make commits."""
    status = place.ask("git", "status", "--porcelain")
    if status.returncode:
        why = (status.stderr.strip().splitlines() or ["no answer"])[0]
        return [
            Finding(
                "git",
                FAIL,
                f"not a git repository, or git is missing: {why}",
                "clone the project with git: audits and DVC need its history",
            )
        ]
    lines = status.stdout.splitlines()
    new = sum(line.startswith("??") for line in lines)
    told = (
        f"{len(lines) - new} files differ from the last commit, {new} are new"
        if lines
        else "nothing differs from the last commit"
    )
    missing = [
        name
        for name in ("user.name", "user.email")
        if not place.ask("git", "config", name).stdout.strip()
    ]
    # git takes these from the environment first
    missing = [
        name
        for name in missing
        if not place.environ.get(f"GIT_COMMITTER_{name.partition('.')[2].upper()}")
    ]
    return [
        Finding("git", OK, told),
        Finding(
            "git identity",
            WARN if missing else OK,
            f"{' and '.join(missing)} not set" if missing else "set",
            "git config user.name NAME; git config user.email ADDRESS (retraining commits under a "
            "name of its own until then)",
        ),
    ]


def dvc(place: Place) -> list[Finding]:
    """The program answers, and the folder is its project."""
    done = place.dvc("--version")
    works = done.returncode == 0
    why = (done.stderr.strip().splitlines() or ["no answer"])[-1]
    there = (place.root / ".dvc/config").exists() and (place.root / "dvc.yaml").exists()
    return [
        Finding(
            "dvc",
            OK if works else FAIL,
            done.stdout.strip() if works else f"`dvc --version` fails: {why}",
            "make setup",
        ),
        Finding(
            "dvc project",
            OK if there else FAIL,
            "initialised" if there else f"no .dvc/config or no dvc.yaml in {place.root}",
            "run from the project's root; in a copy without .dvc: git checkout -- .dvc",
        ),
    ]


def cache(place: Place) -> Finding:
    """The cache folder (or where it will be) can be written."""
    folder = place.cache()
    at = existing(folder)
    good = at.is_dir() and os.access(at, os.W_OK | os.X_OK)
    return Finding(
        "dvc cache",
        OK if good else FAIL,
        f"{folder} "
        + ("can be written" if good else f"cannot be written ({at})")
        + ("" if folder.exists() else "; not made yet"),
        "give this user the folder, or name another one: dvc cache dir --local FOLDER",
    )


def manifests(place: Place) -> Finding:
    """The folders' manifests in the cache name files inside their folders only: `dvc checkout`
    would follow `../` out of the project."""
    wrong, count = [], 0
    for file in sorted(place.cache().glob("files/md5/??/*.dir")):
        count += 1
        try:
            names = [entry["relpath"] for entry in json.loads(file.read_bytes())]
            bad = [
                name
                for name in names
                if not name
                or {"", ".", ".."} & set(name.split("/"))
                or "\\" in name
                or "\0" in name
            ]
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            wrong.append(f"{file.parent.name}{file.stem}: no manifest ({type(error).__name__})")
            continue
        wrong += (
            [f"{file.parent.name}{file.stem} names {', '.join(map(repr, bad[:3]))}"] if bad else []
        )
    return Finding(
        "dvc manifests",
        FAIL if wrong else OK,
        "; ".join(wrong[:5]) or f"{count} manifests, all inside their folders",
        "no `dvc checkout` or `dvc pull` before these objects are removed from the cache; ask who "
        "wrote the remote",
    )


def remotes(place: Place) -> list[Finding]:
    """The remotes by name and place, and secrets in the configuration that git keeps."""
    found = {
        name.split(".")[1]: url
        for name, url in place.settings().items()
        if re.fullmatch(r"remote\.[^.]+\.url", name)
    }
    default = place.settings().get("core.remote")
    told = ", ".join(
        f"{name} ({url}){' default' if name == default else ''}" for name, url in found.items()
    )
    shown = [Finding("dvc remotes", OK, told or "none: results live on this machine only")]
    if default and default not in found:
        shown = [
            Finding(
                "dvc remotes",
                FAIL,
                f"the default remote {default!r} is not configured",
                "dvc remote add -d NAME URL",
            )
        ]
    config = place.root / ".dvc/config"
    text = config.read_text(encoding="utf-8", errors="replace") if config.exists() else ""
    kept = sorted({match[1] for form in (KEYS, IN_URL) for match in form.finditer(text)})
    if kept:
        shown.append(
            Finding(
                "dvc secrets",
                FAIL,
                f".dvc/config, which git keeps, holds a secret: {', '.join(kept)}",
                "dvc remote modify --local NAME OPTION VALUE, remove it from .dvc/config, and "
                "change the secret",
            )
        )
    return shown


def lockfiles(place: Place) -> Finding:
    """dvc.lock of the project and of every experiment: YAML that DVC wrote, without the marks of
    a merge conflict."""
    wrong = []
    files = [
        file
        for file in (place.root / "dvc.lock", *sorted(place.root.glob("*/*/dvc.lock")))
        if file.exists()
    ]
    for file in files:
        name = file.relative_to(place.root).as_posix()
        text = file.read_text(encoding="utf-8", errors="replace")
        if MARKS.search(text):
            wrong.append(f"{name}: marks of a merge conflict")
            continue
        try:
            content = YAML(typ="safe").load(text)
        except YAMLError as error:
            wrong.append(f"{name}: {' '.join(str(error).split())[:200]}")
            continue
        if not isinstance(content, dict) or (
            "stages" not in content and content.keys() - {"schema"}
        ):
            wrong.append(f"{name}: no lock file of DVC")
    return Finding(
        "dvc.lock",
        FAIL if wrong else OK,
        "; ".join(wrong) or f"{len(files)} lock files, all sound",
        "git checkout --theirs (or --ours) FILE, then `make repro`: DVC makes again whatever does "
        "not fit",
    )
