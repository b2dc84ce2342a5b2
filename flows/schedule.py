"""`make schedule`, `python -m flows.schedule`: retraining by the clock, unattended, until Ctrl-C or
SIGTERM.

A Prefect server of this project's own (flows/server.py) and a runner, which starts each due run as
a process of its own. The deployments are the table below. A run that falls due while one is at work
is cancelled. A run whose process is killed ends as Crashed; those that a killed schedule left as
Running are set to Crashed when the next one starts. Cron is in UTC: no hour comes twice.
Exit code: 0 ended as asked, 1 the server failed, 2 the user's mistake, 75 another schedule of this
project is running.
"""

import argparse
import asyncio
import contextlib
import importlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from flows.asked import within
from flows.process import FlowError, environment, locked, only_one
from flows.profiles import write
from flows.retrain import RUNNER
from flows.server import (
    DATABASES,
    PASSWORDS,
    address,
    credentials,
    database,
    ended,
    free_port,
    running,
)
from flows.settings import Settings, settings

# Deployment -> the flow's module (the flow has the deployment's name) and how many of its runs may
# be at work at once.
DEPLOYMENTS: dict[str, dict[str, Any]] = {"retrain": {"module": "flows.retrain", "at_once": 1}}
POLL_S = 5.0  # how often the runner asks for due runs
HEAL_S = 10.0


def checked(cron: str) -> str:
    """The cron expression. FlowError 2 when it is none."""
    from prefect.client.schemas.schedules import CronSchedule
    from pydantic import ValidationError

    try:
        return CronSchedule(cron=cron, timezone="UTC").cron
    except ValidationError:
        raise FlowError(
            f"{cron!r} is no cron expression\n"
            '  expected: five fields, as in "*/10 * * * *" (minute hour day month weekday)',
            2,
        ) from None


async def heal(first: bool) -> int:
    """Set to Crashed what is told as at work and is not; how many runs that were.

    At the schedule's start (`first`) that is every run of its deployments, and every run at all
    when nobody holds the flows' lock; later it is the parts (runs inside a run) whose whole has
    ended: the runner itself sees to a run, not to its parts.
    """
    from prefect.client.orchestration import get_client
    from prefect.client.schemas import filters
    from prefect.states import Crashed

    state = {"type": {"any_": ["RUNNING", "PENDING", "CANCELLING"]}}
    own = filters.DeploymentFilter(name={"any_": list(DEPLOYMENTS)})
    if first:
        with contextlib.suppress(FlowError), only_one():
            own = None
    async with get_client() as client:
        dead = (
            await client.read_flow_runs(
                deployment_filter=own, flow_run_filter=filters.FlowRunFilter(state=state)
            )
            if first
            else []
        )
        for part in await client.read_flow_runs(
            flow_run_filter=filters.FlowRunFilter(
                state=state, parent_task_run_id={"is_null_": False}
            )
        ):
            whole = (await client.read_task_run(part.parent_task_run_id)).flow_run_id
            if whole in {run.id for run in dead} or (
                whole and (await client.read_flow_run(whole)).state.is_final()
            ):
                dead.append(part)
        gone = Crashed(
            message="its process is gone: it was killed, or the schedule that started it"
        )
        for run in dead:
            await client.set_flow_run_state(run.id, gone, force=True)
    return len({run.id for run in dead})


def deployment(name: str, cron: str, parameters: dict[str, Any]) -> Any:
    """A deployment of the table for the runner; not to be called from a running event loop."""
    from prefect.client.schemas.objects import ConcurrencyLimitConfig, ConcurrencyLimitStrategy
    from prefect.client.schemas.schedules import CronSchedule
    from prefect.deployments.runner import EntrypointType

    limit = ConcurrencyLimitConfig(
        limit=DEPLOYMENTS[name]["at_once"], collision_strategy=ConcurrencyLimitStrategy.CANCEL_NEW
    )
    flow = getattr(importlib.import_module(DEPLOYMENTS[name]["module"]), name)
    return flow.to_deployment(
        name,
        schedule=CronSchedule(cron=cron, timezone="UTC"),
        paused=False,
        concurrency_limit=limit,
        parameters=parameters,
        entrypoint_type=EntrypointType.MODULE_PATH,
    )


async def serve(
    server: subprocess.Popen[Any], deployments: list[Any], greeting: str, ready: Path | None
) -> None:
    """Serve the deployments until a signal. FlowError when the server ends before that."""
    from prefect.runner import Runner

    stop, loop = asyncio.Event(), asyncio.get_running_loop()

    class Quiet(Runner):
        """Prefect's runner; a signal sets an event, and the runs are ended from this loop."""

        def handle_sigterm(self, *_: object) -> None:
            loop.call_soon_threadsafe(stop.set)

    if crashed := await heal(first=True):
        print(f"{crashed} runs that were killed are now told as crashed", flush=True)
    runner = Quiet(name="tradewind", limit=len(DEPLOYMENTS) + 1, query_seconds=POLL_S)
    for made in deployments:
        await runner.aadd_deployment(made)
    signal.signal(signal.SIGINT, runner.handle_sigterm)
    work = asyncio.create_task(runner.start())
    asked = asyncio.create_task(stop.wait())
    while not runner.started and not work.done():
        await asyncio.sleep(0.05)
    print(greeting, flush=True)
    if ready:
        write(ready, f"{os.environ['PREFECT_API_URL']}\n")  # whole: who waits reads it at once
    healed = loop.time()
    try:
        while not asked.done() and not work.done() and server.poll() is None:
            await asyncio.wait([work, asked], timeout=1.0, return_when=asyncio.FIRST_COMPLETED)
            if loop.time() > healed + HEAL_S:
                with contextlib.suppress(Exception):  # a server that is too busy now is asked again
                    await heal(first=False)
                healed = loop.time()
        if server.poll() is not None:
            raise ended(server, os.environ[PASSWORDS[0]])
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        asked.cancel()
        if runner.started:
            await runner.astop()
        await work
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the server's end is near


def main(arguments: list[str] | None = None) -> int:
    """Parse, start the server, serve; the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m flows.schedule", description=__doc__.split("\n\n")[0]
    )
    parser.add_argument(
        "--cron",
        help="when to look into the drop folder, instead of params.yaml's retraining.cron (UTC)",
    )
    parser.add_argument(
        "--drop", help="the folder to look into, instead of params.yaml's retraining.drop"
    )
    parser.add_argument(
        "--jobs", type=within(1, 256), metavar="N", help="stages at once (default: one a core)"
    )
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        help=f"where the server listens; beyond loopback only with {PASSWORDS[0]} set",
    )
    parser.add_argument(
        "--port",
        type=within(0, 65_535),
        default=4200,
        metavar="N",
        help="default 4200; 0: any free one",
    )
    parser.add_argument(
        "--database",
        metavar="URL",
        help="PostgreSQL instead of SQLite; a URL with a password is better given in the "
        f"environment: {DATABASES[0]}",
    )
    parser.add_argument(
        "--ready",
        type=Path,
        metavar="FILE",
        help="write the API's address there once runs are served",
    )
    asked = parser.parse_args(arguments)
    try:
        with locked("schedule", "already running: another schedule serves this project"):
            return served(asked, settings())
    except FlowError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code


def served(asked: argparse.Namespace, section: Settings) -> int:
    """All that can be wrong is found first; then the server, then the runner; 0 after a signal."""
    auth, where = credentials(asked.host)
    store, port = database(asked.database), free_port(asked.host, asked.port)
    os.environ.setdefault("PREFECT_LOGGING_LEVEL", "INFO")
    api = address(asked.host, port)
    os.environ.update(
        environment()
        | dict.fromkeys(PASSWORDS, auth)
        | {RUNNER: str(os.getpid()), "PREFECT_API_URL": api}
    )
    for name in DATABASES:
        os.environ.pop(name, None)  # the server's affair: no stage needs to see it
    cron = checked(asked.cron or section.cron)
    parameters = {
        key: value for key, value in (("drop", asked.drop), ("jobs", asked.jobs)) if value
    }
    deployments = [deployment(name, cron, parameters) for name in DEPLOYMENTS]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # until the runner takes it
    try:
        print("starting Prefect ...", flush=True)
        with running(asked.host, port, auth, store) as server:
            greeting = (
                f"Prefect is at {api.removesuffix('/api')} (user:password {where}). "
                f"{asked.drop or section.drop} is looked into "
                f'at "{cron}" (UTC). Ctrl-C ends it.'
            )
            asyncio.run(serve(server, deployments, greeting, asked.ready))
    except KeyboardInterrupt:
        pass
    print("ended", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
