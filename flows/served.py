"""DVC's commands in a process that has loaded DVC once.

A run of hundreds of stages would load DVC's libraries hundreds of times, half a second of processor
each. A server loads them and forks for each command, so that no command sees what another did. It
loads nothing that starts threads, which a fork would lose. Once it has been asked for a few
commands it loads torch, too, for their stages (flows/forked.py); locks are written entry by entry
(flows/locks.py). A server belongs to the thread that started it and ends with it; its end is its
command's. Run as a program this file is the server.
"""

import argparse
import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

LOADED = ("dvc.cli", "dvc.commands.repro", "dvc.repo", "dvc.repo.reproduce", "dvc.dvcfile")
FEW = 3  # commands; a run of no more would lose by loading torch


class Server:
    """A process that has loaded DVC, started through the leash of flows/process.py."""

    def __init__(self) -> None:
        from flows.process import environment, leashed  # run as a program, this file finds none

        self.process: subprocess.Popen[str] = subprocess.Popen(
            # -P: this folder has modules that are called as others' are (git, server)
            leashed([sys.executable, "-P", str(Path(__file__).absolute())]),
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, arguments: list[str], environment: dict[str, str], log: Path) -> int:
        """The exit code of `dvc ARGUMENTS` in this folder, its output in the log, which exists;
        that of a killed process where the server has ended."""
        assert self.process.stdin and self.process.stdout
        asked = [arguments, environment, str(Path.cwd()), str(log.absolute())]
        with contextlib.suppress(OSError):
            self.process.stdin.write(json.dumps(asked) + "\n")
            self.process.stdin.flush()
            if answer := self.process.stdout.readline():
                return int(answer)
        return self.process.wait()

    def alive(self) -> bool:
        """Whether it can be asked."""
        return self.process.poll() is None

    def kill(self) -> None:
        """End it and what it runs."""
        self.process.kill()
        self.process.communicate()


def quicken(torch: Any) -> None:
    """Have this process' DVC write locks entry by entry, and run stages in forks that have torch,
    where it is loaded."""
    from flows import forked, locks

    lock = importlib.import_module("dvc.dvcfile").Lockfile
    data_of = importlib.import_module("dvc.stage.serialize").to_lockfile
    dumped = importlib.import_module("dvc.utils.serialize").dumps_yaml
    lock.dump_stages = locks.instead(lock.dump_stages, data_of, dumped)
    if torch:
        importlib.import_module("tqdm").tqdm.monitor_interval = 0  # no thread for bars unseen
        run = importlib.import_module("dvc.stage.run")
        vars(run)["_run"] = forked.instead(run._run, torch, run.StageCmdFailedError)


def work(
    torch: Any, arguments: list[str], environment: dict[str, str], folder: str, log: str
) -> int:
    """Run the command in this process, which was forked for it; its exit code. `torch` is what
    flows.forked.shelf gave."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    written = os.open(log, os.O_WRONLY | os.O_APPEND)
    os.dup2(written, 1)
    os.dup2(written, 2)
    quicken(torch)
    code: int = importlib.import_module("dvc.cli").main(arguments)
    return code


def serve() -> None:
    """Answer each line of standard input, a command, with a line, its exit code."""
    sys.path.insert(0, str(Path(__file__).absolute().parent.parent))
    from flows.forked import shelf
    from flows.process import die_with

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started this ends it
    for name in LOADED:
        importlib.import_module(name)
    # two commands at once wait for each other's lock: asked for every .05 s, not every .5
    vars(importlib.import_module("dvc.lock"))["DEFAULT_TIMEOUT"] = 0.3
    server, answers, torch = os.getpid(), os.fdopen(os.dup(1), "w"), None
    for count, line in enumerate(sys.stdin):
        if count == FEW:
            torch = shelf()
        child = os.fork()
        if not child:
            code: Any = 1
            try:
                die_with(server)
                code = work(torch, *json.loads(line))
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else int(end.code is not None)
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        answers.write(f"{code}\n")
        answers.flush()


if __name__ == "__main__":
    argparse.ArgumentParser(
        prog="python -m flows.served", description="What `python -m flows.repro` asks for stages."
    ).parse_args()
    serve()
