"""`python -m flows.profiles [PROFILE] -- COMMAND ...`: run a command under a profile and leave
params.yaml as it was.

params.yaml names its profile by one word, `run: *mini`. For the run's duration that word is another
one.
The original is put aside in `.work/profile/` first, so that a run killed in between is healed when
the next one starts; what somebody else changed in the file meanwhile stays. A run under the profile
that is set anyway does not touch the file.
Exit code: the command's; 2 for an unknown profile, 75 when another flow is running.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import NoReturn

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from flows.process import WORK, FlowError, environment, leashed, only_one

PARAMS = Path("params.yaml")
SAVED = WORK / "profile" / "params.yaml"
SWITCH = (
    WORK / "profile" / "switch.json"
)  # exists exactly while params.yaml may hold another run's word
WORD = re.compile(r"(?m)^(run:[ \t]*\*)(\w+)(?=[ \t]*(?:#.*)?\r?$)")


def write(path: Path, text: str) -> None:
    """Replace a file by temp file, fsync and rename; its mode stays. Line ends are written as
    they are."""
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


def read() -> str:
    """params.yaml's text, line ends as they are."""
    try:
        return PARAMS.read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise FlowError("params.yaml is missing: run from the project's root", 2) from None
    except UnicodeDecodeError as error:
        raise FlowError(f"params.yaml is not UTF-8: {error}", 2) from None


def current(text: str) -> str:
    """The profile that the text names."""
    words = WORD.findall(text)
    if len(words) != 1:
        raise FlowError(
            f"params.yaml: expected exactly one line `run: *PROFILE`, found {len(words)}", 2
        )
    return words[0][1]


def switch(text: str, profile: str) -> str:
    """The text with the one word replaced. FlowError 2 (with the known names) unless it then
    names that profile."""
    try:
        known = list(YAML(typ="safe", pure=True).load(text)["profiles"])
        if profile not in known:
            raise FlowError(f"{profile!r} is no profile (known: {', '.join(sorted(known))})", 2)
        new = WORD.sub(rf"\g<1>{profile}", text)
        data = YAML(typ="safe", pure=True).load(new)
    except (YAMLError, ValueError, TypeError, KeyError) as error:
        raise FlowError(
            f"params.yaml: its profiles cannot be read: {' '.join(str(error).split())}", 2
        ) from None
    if data["run"] is not data["profiles"][profile]:
        raise FlowError(f"params.yaml: `*{profile}` is not the anchor of profiles.{profile}", 2)
    return new


def heal() -> None:
    """Undo the switch of a run that was killed. Only the one word is turned back, so later edits
    of the file stay."""
    if not SWITCH.exists():
        return
    words = json.loads(SWITCH.read_text(encoding="utf-8"))
    if not PARAMS.exists():
        write(PARAMS, SAVED.read_bytes().decode("utf-8"))
    elif current(text := read()) == words["to"]:
        write(PARAMS, WORD.sub(rf"\g<1>{words['from']}", text))
    SWITCH.unlink()
    SAVED.unlink(missing_ok=True)


@contextlib.contextmanager
def switched(profile: str | None = None) -> Iterator[str]:
    """Hold the flows' lock with params.yaml set to `profile` (None: as it is); yields the
    profile's name."""
    with only_one() as outermost:
        if outermost:
            heal()
        text = read()
        before = current(text)
        if profile in (None, before):
            yield before
            return
        after = switch(text, profile)
        if not outermost:
            raise FlowError(f"the run around this one is set to profile {before!r}", 2)
        write(SAVED, text)
        write(SWITCH, json.dumps({"from": before, "to": profile}))
        try:
            write(PARAMS, after)
            yield profile
        finally:
            heal()


def stop(number: int, _frame: FrameType | None) -> NoReturn:
    """SIGTERM as an ordinary exit, so that what was switched is switched back."""
    raise SystemExit(128 + number)


def main(arguments: list[str]) -> int:
    """Run the command under the profile; its exit code."""
    if arguments[:1] in (["-h"], ["--help"]):
        print(f"usage: python -m flows.profiles [PROFILE] -- COMMAND ...\n\n{__doc__}")
        return 0
    named = arguments.index("--") if "--" in arguments else 2
    command = arguments[named + 1 :]
    if named > 1 or not command:
        print("usage: python -m flows.profiles [PROFILE] -- COMMAND ...", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, stop)
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
