"""`python -m flows.profiles [PROFILE] -- COMMAND ...`: run a command under a profile and leave the
project as it was. `python -m flows.profiles --set PROFILE`: set the profile for good.

params.yaml names its profile by one word, `run: *mini`, and so does the last line of every
reports/EXPERIMENT/cells.yaml. For the run's duration that word is another one, in all of them.
The originals are put aside in `.work/profile/` first, so that a run killed in between is healed
when the next one starts; what somebody else changed in the files meanwhile stays. A run under the
profile that is set anyway does not touch a file.
Exit code: the command's; 2 for an unknown profile, 75 when another flow is running, 127 (126) for
a command that is not there (cannot be run).
"""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from flows.process import WORK, FlowError, ended_by, environment, leashed, only_one

PARAMS = Path("params.yaml")
CELLS = "reports/*/cells.yaml"
SAVED = WORK / "profile"  # the files as they were, by their paths
SWITCH = SAVED / "switch.json"  # exists exactly while files may hold another run's word
USAGE = "usage: python -m flows.profiles [PROFILE] -- COMMAND ... | --set PROFILE"
WORD = re.compile(r"(?m)^(run:[ \t]*\*)(\w+)(?=[ \t]*(?:#.*)?\r?$)")


def write(path: Path, text: str) -> None:
    """Replace a file by temp file, fsync and rename; its mode stays. Line ends are written as
    they are. FlowError where it cannot be written."""
    try:
        replace(path, text)
    except OSError as error:
        raise FlowError(
            f"{path} cannot be written: {error.strerror or error}\n"
            "  remedy: make room, or let your user write there"
        ) from None


def replace(path: Path, text: str) -> None:
    """The same, with the system's own errors."""
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
    fd, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    try:
        with os.fdopen(fd, "wb") as stream:
            stream.write(text.encode("utf-8"))
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(name, mode)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def files() -> list[Path]:
    """The files that name the profile, params.yaml first."""
    return [PARAMS, *sorted(Path().glob(CELLS))]


def read(path: Path = PARAMS) -> str:
    """A file's text, line ends as they are."""
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise FlowError(f"{path} is missing: run from the project's root", 2) from None
    except UnicodeDecodeError as error:
        raise FlowError(f"{path} is not UTF-8: {error}", 2) from None


def current(text: str, path: Path = PARAMS) -> str:
    """The profile that the text names."""
    words = WORD.findall(text)
    if len(words) != 1:
        raise FlowError(f"{path}: expected exactly one line `run: *PROFILE`, found {len(words)}", 2)
    return words[0][1]


def loaded(text: str, path: Path) -> Any:
    """A file's data. FlowError 2 where it is no YAML."""
    try:
        return YAML(typ="safe", pure=True).load(text)
    except (YAMLError, ValueError) as error:
        raise FlowError(
            f"{path}: its profiles cannot be read: {' '.join(str(error).split())}", 2
        ) from None


def refuse_unknown(profile: str, text: str, path: Path, where: str = "") -> None:
    """FlowError 2, with the known names, for what is no profile of a file; `where` comes first."""
    whole = loaded(WORD.sub("", text), path)  # the line may name what there is not
    try:
        known = sorted(whole["profiles"] if path == PARAMS else whole)
    except (TypeError, KeyError) as error:
        raise FlowError(f"{path}: its profiles cannot be read: {error}", 2) from None
    if profile not in known:
        raise FlowError(f"{where}{profile!r} is no profile (known: {', '.join(known)})", 2)


def switch(text: str, profile: str, path: Path = PARAMS) -> str:
    """The text with the one word replaced. FlowError 2 (with the known names) unless it then
    names that profile."""
    refuse_unknown(profile, text, path, "" if path == PARAMS else f"{path}: ")
    new = WORD.sub(rf"\g<1>{profile}", text)
    data = loaded(new, path)
    if data["run"] is not (data["profiles"] if path == PARAMS else data)[profile]:
        place = "profiles." if path == PARAMS else ""
        raise FlowError(f"{path}: `*{profile}` is not the anchor of {place}{profile}", 2)
    return new


def heal() -> None:
    """Undo the switch of a run that was killed, also between two files. Only the one word of each
    is turned back, so later edits of a file stay."""
    if not SWITCH.exists():
        return
    try:
        words = json.loads(SWITCH.read_text(encoding="utf-8"))
        words["from"], words["to"]
    except (ValueError, TypeError, KeyError):
        raise FlowError(
            f"{SWITCH} is damaged: which profile a killed run had switched is not known\n"
            f"  remedy: look at `git diff {PARAMS}`, remove {SAVED}, and set the profile by "
            "`python -m flows.profiles --set PROFILE`",
            2,
        ) from None
    for saved in sorted(path for path in SAVED.rglob("*.yaml") if path.is_file()):
        path = saved.relative_to(SAVED)
        if not path.exists():
            if path.parent.is_dir():
                write(path, saved.read_bytes().decode("utf-8"))
        elif current(text := read(path), path) == words["to"]:
            write(path, WORD.sub(rf"\g<1>{words['from']}", text))
    SWITCH.unlink()
    shutil.rmtree(SAVED)


def mixed(words: dict[Path, str], texts: dict[Path, str]) -> None:
    """FlowError 2 where the files name different profiles, or one a profile that there is not."""
    others = [f"{path} {word}" for path, word in words.items() if word != words[PARAMS]]
    if others:
        for path, word in words.items():
            refuse_unknown(word, texts[path], path, f"{path}: ")
        raise FlowError(
            f"two files name different profiles: {PARAMS} {words[PARAMS]}, {', '.join(others)}; "
            f"`python -m flows.profiles --set {words[PARAMS]}` sets all of them",
            2,
        )


def turn(profile: str) -> None:
    """Set the profile for good, in every file that names it. What a killed run switched is undone
    first; files that named different profiles name one afterwards."""
    with only_one() as outermost:
        if not outermost:
            raise FlowError("a run under way has its profile", 2)
        heal()
        texts = {path: read(path) for path in files()}
        new = {
            path: switch(text, profile, path)
            for path, text in texts.items()
            if current(text, path) != profile
        }
        for path, text in new.items():
            write(path, text)


@contextlib.contextmanager
def switched(profile: str | None = None) -> Iterator[str]:
    """Hold the flows' lock with the files set to `profile` (None: as they are); yields the
    profile's name."""
    with only_one() as outermost:
        if outermost:
            heal()
        texts = {path: read(path) for path in files()}
        words = {path: current(text, path) for path, text in texts.items()}
        mixed(words, texts)
        before = words[PARAMS]
        if profile in (None, before):
            yield before
            return
        after = {path: switch(text, profile, path) for path, text in texts.items()}
        if not outermost:
            raise FlowError(f"the run around this one is set to profile {before!r}", 2)
        shutil.rmtree(SAVED, ignore_errors=True)  # what a run killed while it healed has left
        for path, text in texts.items():
            write(SAVED / path, text)
        write(SWITCH, json.dumps({"from": before, "to": profile}))
        try:
            for path, text in after.items():
                write(path, text)
            yield profile
        finally:
            heal()


def stop(number: int, _frame: FrameType | None) -> NoReturn:
    """A signal as an ordinary exit, so that what was switched is switched back."""
    raise SystemExit(128 + number)


def main(arguments: list[str]) -> int:
    """Run the command under the profile; its exit code."""
    if arguments[:1] in (["-h"], ["--help"]):
        print(f"{USAGE}\n\n{__doc__}")
        return 0
    if arguments[:1] == ["--set"] and len(arguments) == 2:
        try:
            turn(arguments[1])
        except FlowError as error:
            print(f"error: {error}", file=sys.stderr)
            return error.exit_code
        return 0
    named = arguments.index("--") if "--" in arguments else 2
    command = arguments[named + 1 :]
    if named > 1 or not command:
        print(USAGE, file=sys.stderr)
        return 2
    ended_by(stop)
    try:
        with switched(arguments[0] if named else None):
            code = subprocess.run(leashed(command), env=environment(), check=False).returncode
    except FlowError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
