"""Checks of what runs, and of what killed runs left behind: DVC's locks, the flows' lock, the
profile's switch, Prefect servers.

Whoever holds a lock is told by process number and the first words of its command. Only loopback is
asked, for at most a second.
"""

import fcntl
import ipaddress
import json
import os
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

from stages.doctor.finding import FAIL, OK, WARN, Finding, Place, alive, called, words_of

ASK_S = 1.0


def is_locked(path: Path) -> bool:
    """Whether a process holds the file's lock. Asked by taking a shared one and giving it back
    at once."""
    if not path.exists():
        return False
    with path.open("rb") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def processes() -> list[int]:
    """The numbers of all processes but this one."""
    return [
        int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()
    ]


def holders(path: Path) -> str:
    """The processes that have a file open, as far as this user may see."""
    found = []
    for pid in processes():
        try:
            with os.scandir(f"/proc/{pid}/fd") as descriptors:
                if any(
                    os.path.samefile(entry.path, path) for entry in descriptors if entry.is_file()
                ):
                    found.append(called(pid))
        except OSError:  # gone, or somebody else's
            continue
    return ", ".join(found) or "a process that this user cannot see"


def dvc_runs(place: Place) -> list[Finding]:
    """DVC's lock on the project, and its list of paths in use."""
    lock, table = place.root / ".dvc/tmp/lock", place.root / ".dvc/tmp/rwlock"
    found = [
        Finding(
            "dvc lock",
            OK,
            f"held by {holders(lock)}: dvc is at work" if is_locked(lock) else "free",
        )
    ]
    try:
        used = json.loads(table.read_text(encoding="utf-8")) if table.exists() else {}
        infos = list(used.get("write", {}).values()) + [
            info for readers in used.get("read", {}).values() for info in readers
        ]
        pids = sorted({int(info["pid"]) for info in infos})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return [
            *found,
            Finding(
                "dvc paths",
                FAIL,
                f".dvc/tmp/rwlock cannot be read ({type(error).__name__}): every dvc command will "
                "fail",
                "when no dvc is running: rm .dvc/tmp/rwlock",
            ),
        ]
    dead = [pid for pid in pids if not alive(pid)]
    live = [called(pid) for pid in pids if pid not in dead]
    told = [f"in use by {', '.join(live)}"] if live else []
    told += [f"left by dead processes: {', '.join(map(str, dead))}"] if dead else []
    return [
        *found,
        Finding(
            "dvc paths",
            WARN if dead else OK,
            "; ".join(told) or "none in use",
            "nothing needs doing: the next dvc that meets these paths strikes them off",
        ),
    ]


def flow(place: Place) -> list[Finding]:
    """The locks of those who drive the DAG (`make repro`, a retraining run) and of the schedule
    (`make schedule`)."""
    locks = {name: place.root / ".work/locks" / name for name in ("flow", "schedule")}
    return [
        Finding(name, OK, f"at work: {holders(lock)}" if is_locked(lock) else "none at work")
        for name, lock in locks.items()
    ]


def left_over(place: Place) -> Finding:
    """params.yaml as a killed run under another profile left it."""
    switch = place.root / ".work/profile/switch.json"
    if not switch.exists() or is_locked(place.root / ".work/locks/flow"):
        return Finding(
            "left-overs",
            OK,
            "a run under another profile is at work" if switch.exists() else "none",
        )
    try:
        words = json.loads(switch.read_text(encoding="utf-8"))
        told = f"a killed run left params.yaml switched from {words['from']} to {words['to']}"
    except (ValueError, KeyError, TypeError):
        return Finding(
            "left-overs",
            FAIL,
            f"{switch.relative_to(place.root)} cannot be read",
            "compare params.yaml and reports/*/cells.yaml with .work/profile and with git, then "
            "remove .work/profile",
        )
    return Finding(
        "left-overs",
        WARN,
        told,
        "python -m flows.profiles -- true (any flow heals it when it starts); plain `dvc repro` "
        "would not",
    )


def servers(home: Path) -> list[tuple[int, int]]:
    """(process, its parent) of every Prefect server whose home is this project's, as far as this
    user may see."""
    found = []
    for pid in processes():
        words = " ".join(words_of(pid))
        if "prefect" not in words or "server" not in words:
            continue
        try:
            mine = os.fsencode(f"PREFECT_HOME={home}") in Path(
                f"/proc/{pid}/environ"
            ).read_bytes().split(b"\0")
            parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        found += [(pid, parent)] if mine else []
    return found


def on_loopback(host: str) -> bool:
    """Whether a host's name or address is this machine's own."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def answers(url: str) -> str:
    """ "" when a Prefect API answers there within a second (a refusal without password is an
    answer, too), else why not."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url.rstrip("/") + "/health", timeout=ASK_S) as reply:
            return "" if reply.status == 200 else f"status {reply.status}"
    except urllib.error.HTTPError as error:
        return "" if error.code in (401, 403) else f"status {error.code}"
    except (OSError, ValueError) as error:
        return str(getattr(error, "reason", error))


def prefect(place: Place) -> list[Finding]:
    """Prefect servers of this project, those whose starter is gone, and the API that the
    environment names."""
    home = place.root.resolve() / ".work/prefect"
    running = servers(home)
    orphans = [pid for pid, parent in running if parent == 1 or not alive(parent)]
    there = [called(pid) for pid, _ in running if pid not in orphans]
    told = [f"at work: {', '.join(there)}"] if there else []
    told += [f"without its starter: {', '.join(map(called, orphans))}"] if orphans else []
    found = [
        Finding(
            "prefect servers",
            WARN if orphans else OK,
            "; ".join(told) or "none at work",
            "if nobody started it on purpose: kill " + " ".join(map(str, orphans)),
        )
    ]
    password = home / "auth"
    if password.exists() and password.stat().st_mode & 0o077:
        found.append(
            Finding(
                "prefect password",
                FAIL,
                ".work/prefect/auth can be read by other users",
                "rm .work/prefect/auth, and start `make schedule` anew: it makes another password",
            )
        )
    url = place.environ.get("PREFECT_API_URL", "")
    host = urlsplit(url).hostname or ""
    if not url:
        return [
            *found,
            Finding(
                "prefect api", OK, "PREFECT_API_URL is not set: flows start a server of their own"
            ),
        ]
    if not on_loopback(host):
        return [
            *found,
            Finding(
                "prefect api", OK, f"PREFECT_API_URL names another machine ({host}); not asked"
            ),
        ]
    why = answers(url)
    return [
        *found,
        Finding(
            "prefect api",
            FAIL if why else OK,
            f"{host}: {why}" if why else f"{host}: answers",
            "start it (make schedule), or unset PREFECT_API_URL",
        ),
    ]
