"""One pinned file over https, such that nothing worse than an error can come of it.

The bytes grow in `NAME.part`; beside it `NAME.part.json` holds the validator (strong ETag, length)
of the reply they came from, and only a reply with an equal validator may continue them. A file gets
its name after its digest was read back from disk and found to be the pinned one; anything else goes
to `.work/quarantine`. The whole transfer, with all its attempts, has one deadline, a size cap and a
minimum speed. Which URLs may be asked for is in sources.py. Bytes and seconds throughout. Protocol:
RFC 9110 (ranges 14, conditional requests 13, Retry-After 10.2.3).
"""

import contextlib
import os
import random
import re
import shutil
import ssl
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from tqdm import tqdm

from stages import files
from stages.acquisition import asking
from stages.acquisition.sources import HOSTS, digest, matches, objection, pinned, public
from stages.errors import DataError, DownloadError, InputError

if TYPE_CHECKING:
    import httpx

    from stages.params import Source

REDIRECTS = frozenset({301, 302, 303, 307, 308})
TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})
HOPS = 5
PAGES = ("text/html", "application/xhtml+xml")
PAGE = re.compile(rb"<(!doctype\s+html|html)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Limits:
    """How long, how often and how slowly a transfer may go."""

    total_s: float = 4 * 3600.0
    silence_s: float = 60.0
    attempts: int = 6
    backoff_s: float = 1.0
    backoff_max_s: float = 60.0
    speed_window_s: float = 30.0
    speed_min_bytes_s: float = 1024.0


class _Again(Exception):
    """An attempt failed in a way that another may not; `after_s` is what the server asked us to
    wait."""

    def __init__(self, reason: str, after_s: float = 0.0):
        super().__init__(reason)
        self.after_s = after_s


def fetch(
    source: "Source",
    path: str | Path,
    *,
    limits: Limits = Limits(),
    hosts: frozenset[str] = HOSTS,
    loopback: bool = False,
) -> None:
    """Bring the pinned file to `path`, continuing an earlier `.part` where that is sound.

    InputError for a URL that breaks the rules; DownloadError (what, URL without secrets, expected,
    found, remedy) for everything else. `loopback` admits http to this machine and is for tests.
    Nothing is read if `path` already is the file.
    """
    if reason := objection(source.url, hosts, loopback):
        raise InputError(
            "a URL is refused",
            where=public(source.url),
            found=reason,
            remedy="mend the URL in stages/params/datasets, or add its host to HOSTS in "
            "stages/acquisition/sources.py",
        )
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        if matches(path, source):
            path.with_name(path.name + ".part.json").unlink(missing_ok=True)
            return
        quarantine(path)
    _Download(source, path, limits, hosts, loopback).run()


def quarantine(path: Path) -> Path:
    """Move a file that is not what it should be out of the way, named by what it is; returns
    where it went."""
    place = (
        files.WORK / "quarantine" / f"{files.sha256(path)[:16]}-{path.name.removesuffix('.part')}"
    )
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(path, place)
    return place


class _Download:
    """One transfer with all its attempts."""

    def __init__(
        self, source: "Source", path: Path, limits: Limits, hosts: frozenset[str], loopback: bool
    ):
        self.source, self.path, self.limits = source, path, limits
        self.hosts, self.loopback = hosts, loopback
        self.part = path.with_name(path.name + ".part")
        self.note = path.with_name(path.name + ".part.json")
        self.cap = source.bytes or source.bytes_max
        self.end = time.monotonic() + limits.total_s
        self.continued = False  # some bytes of the part came with an earlier reply

    def left_s(self) -> float:
        return self.end - time.monotonic()

    def error(self, what: str, *, url: str = "", **parts: str) -> DownloadError:
        return DownloadError(what, where=public(url or self.source.url), **parts)

    def run(self) -> None:
        """Attempts until the file is there; a pause the deadline does not hold ends them."""
        again = asking.again()
        for attempt in again.Retrying(
            retry=again.retry_if_exception_type(_Again),
            wait=self.pause_s,
            stop=again.stop_after_attempt(self.limits.attempts)
            | (lambda state: state.upcoming_sleep > self.left_s()),
            retry_error_callback=self.give_up,
        ):
            with attempt:
                self.attempt()
                self.finish()

    def pause_s(self, state: Any) -> float:
        """A growing, jittered pause, or what the server asks for where that is longer."""
        grown = asking.again().wait_exponential(self.limits.backoff_s, self.limits.backoff_max_s)(
            state
        )
        return max(grown * random.uniform(0.5, 1.0), state.outcome.exception().after_s)

    def give_up(self, state: Any) -> None:
        """DownloadError: the attempts or the time are used up."""
        again, limits = state.outcome.exception(), self.limits
        spent = state.attempt_number == limits.attempts and self.left_s() > 0
        asked = f"; the server asks to wait {again.after_s:g} s" if again.after_s else ""
        raise self.error(
            f"a download failed {limits.attempts} times"
            if spent
            else "a download did not end in time",
            expected="" if spent else f"within {limits.total_s:g} s, all attempts together",
            found=f"at last: {again}" if spent else f"{again}{asked}",
            remedy=f"run again{' later' * spent}: what came is kept and continued; or name a "
            "folder that holds the file in TRADEWIND_MIRROR",
        )

    def attempt(self) -> None:
        """One request, continuing the part where its validator allows; returns when the part is
        whole. _Again otherwise."""
        import httpx

        known = self.validator()
        at = self.part.stat().st_size if known and self.part.exists() else 0
        self.continued = at > 0
        if at and at == known["length"]:
            return  # killed between the last byte and the check
        headers = {"Accept-Encoding": "identity", "User-Agent": "tradewind", "Connection": "close"}
        if at:
            headers["Range"] = f"bytes={at}-"
            if known["etag"]:
                headers["If-Range"] = known["etag"]
        try:
            with self.request(headers) as response:
                self.judge(response)
                start, total = asking.extent(response)
                found = {"etag": asking.strong(response.headers.get("ETag")), "length": total}
                if response.status_code == 206 and (not at or start != at or found != known):
                    self.forget()
                    raise _Again("the file changed on the server while it came; begun anew")
                if response.status_code == 200:
                    at = self.begin(found)
                self.receive(response, at, total)
        except (OSError, httpx.HTTPError, httpx.InvalidURL) as told:
            error = asking.cause(told)
            if isinstance(error, ssl.SSLCertVerificationError):
                raise self.error(
                    "the server's certificate does not prove who it is", found=error.verify_message
                ) from None
            if getattr(error, "filename", None):  # ours, not the network's
                raise self.error("the download cannot be written", found=str(error)) from None
            raise _Again(
                "no byte came for too long"
                if isinstance(error, TimeoutError)
                else f"the connection broke ({type(error).__name__})"
            ) from None

    @contextlib.contextmanager
    def request(self, headers: dict[str, str]) -> Iterator["httpx.Response"]:
        """The reply after allowed redirects, within the deadline."""
        url = self.source.url
        for _ in range(HOPS + 1):
            with asking.get(url, headers, self.limits.silence_s, self.left_s) as response:
                if response.status_code not in REDIRECTS:
                    yield response
                    return
                url = self.redirected(url, response.headers.get("Location", ""))
        raise self.error(
            f"more than {HOPS} redirects", found=f"the last one leads to {public(url)}"
        )

    def redirected(self, url: str, location: str) -> str:
        """Where a redirect leads, if it may lead there: same scheme, host on the list."""
        target = urljoin(url, location)
        reason = objection(target, self.hosts, self.loopback) if location else "it names no target"
        if not reason and urlsplit(target).scheme != urlsplit(url).scheme:
            reason = "it leads to another scheme"
        if reason:
            raise self.error(
                "a redirect is refused",
                expected="a host on the list, over the same scheme",
                found=f"{public(target)}: {reason}",
            )
        return target

    def judge(self, response: "httpx.Response") -> None:
        """Pass 200 and 206 with the file in them; _Again for what may pass; DownloadError for
        what will not."""
        status = response.status_code
        if status == 416:
            self.forget()
            raise _Again("the server does not have the range; begun anew")
        if status in TRANSIENT:
            raise _Again(
                f"HTTP {status}", asking.retry_after_s(response.headers.get("Retry-After", ""))
            )
        if status not in (200, 206):
            raise self.error(
                "the server refuses the file",
                found=f"HTTP {status}",
                remedy="see whether the URL in stages/params/datasets still "
                "holds; a folder that holds the file can be named in TRADEWIND_MIRROR",
            )
        kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if kind in PAGES and self.path.suffix not in (".html", ".htm"):
            raise self.page()
        if response.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise self.error(
                "the server sent another encoding than was asked for",
                expected="identity",
                found=response.headers["Content-Encoding"],
            )

    def page(self) -> DownloadError:
        return self.error(
            "a web page came instead of the file",
            expected=self.path.name,
            found="HTML (a log-in, error or consent page)",
            remedy="open the URL in a browser to see what it says; nothing was kept",
        )

    def receive(self, response: "httpx.Response", at: int, total: int | None) -> None:
        """Append the body to the part from byte `at` on, under cap, speed and deadline; fsync
        it."""
        if (total or 0) > self.cap:
            self.forget()
            raise self.too_large(f"{total} bytes announced")
        if (total or self.cap) - at > shutil.disk_usage(self.part.parent).free:
            raise self.no_room(f"{(total or self.cap) - at} bytes are still to come")
        mark, since = at, time.monotonic()
        with (
            self.part.open("r+b", buffering=0) as out,
            tqdm(
                total=total,
                initial=at,
                desc=self.path.name,
                unit="B",
                unit_scale=True,
                disable=None,
                leave=False,
            ) as bar,
        ):
            out.seek(at)
            try:
                for block in asking.body(response, (total or self.cap + 1) - at):
                    at += len(block)
                    if at > self.cap:
                        self.forget()
                        raise self.too_large(f"more than {self.cap} bytes")
                    self.write(out, block)
                    files.fault("part_block")
                    bar.update(len(block))
                    now = time.monotonic()
                    if now - since > self.limits.speed_window_s:
                        if (at - mark) / (now - since) < self.limits.speed_min_bytes_s:
                            raise _Again(
                                f"slower than {self.limits.speed_min_bytes_s:g} bytes/s over "
                                f"{now - since:.1f} s"
                            )
                        mark, since = at, now
            finally:
                os.fsync(out.fileno())
        if at != (total or self.source.bytes or at):
            raise _Again(f"the body ended after {at} of {total or self.source.bytes} bytes")
        files.fault("part_whole")

    def write(self, out, block: bytes) -> None:
        """All of the block, or a DownloadError after the part is removed to free its room."""
        view = memoryview(block)
        try:
            while view:
                view = view[out.write(view) :]
        except OSError as error:
            self.forget()
            raise self.no_room(error.strerror or str(error)) from None

    def no_room(self, found: str) -> DownloadError:
        return self.error(
            "the disk does not hold the download",
            expected=f"room in {self.part.parent}",
            found=found,
            remedy="free some space and run again",
        )

    def too_large(self, found: str) -> DownloadError:
        return self.error(
            "the file is larger than it may be",
            expected=f"at most {self.cap} bytes ({self.path.name})",
            found=found,
            remedy="the upstream file changed, or this is another one; if it is wanted, change its "
            "bytes and digest in stages/params/datasets by a commit",
        )

    def finish(self) -> None:
        """Digest from disk, then the name. A wrong file is quarantined; a wrong continued one is
        first fetched anew."""
        algorithm, expected = pinned(self.source)
        if matches(self.part, self.source):
            files.fault("before_rename")
            os.replace(self.part, self.path)
            files.fault("after_rename")
            self.note.unlink(missing_ok=True)
            return files.sync_folder(self.path.parent)
        if self.continued:
            self.forget()
            raise _Again("the continued file has a wrong digest; begun anew")
        with self.part.open("rb") as stream:
            html = PAGE.search(stream.read(1024)) and self.path.suffix not in (".html", ".htm")
        if html:
            self.forget()
            raise self.page()
        size = self.part.stat().st_size
        found = digest(self.part, algorithm)
        sha256 = files.sha256(self.part)
        place = quarantine(self.part)
        self.forget()
        also = "" if algorithm == "sha256" else f"; sha256 {sha256}"
        raise self.error(
            "the file is not the pinned one",
            expected=f"{algorithm} {expected}"
            + (f", {self.source.bytes} bytes" if self.source.bytes else ""),
            found=f"{algorithm} {found}, {size} bytes{also}",
            remedy=f"the file is kept in {place} and used nowhere. Look at it; to accept it as a "
            f"new version, put its digest and size ({algorithm}: {found}, bytes: {size}) under "
            f"{self.path.name} in stages/params/datasets and commit that; else delete it",
        )

    def validator(self) -> dict[Any, Any]:
        """What the part's reply said of itself ({} when there is nothing a continuation could be
        held against)."""
        with contextlib.suppress(DataError):
            known = files.read_json(self.note)
            if isinstance(known, dict) and (known.get("etag") or known.get("length")):
                return {"etag": known.get("etag"), "length": known.get("length")}
        return {}

    def begin(self, found: dict[Any, Any]) -> int:
        """An empty part, then its validator: whatever the part holds later came with that
        validator."""
        self.continued = False
        self.part.write_bytes(b"")
        files.write_json(self.note, found)
        files.fault("part_begun")
        return 0

    def forget(self) -> None:
        """Remove the part, then its validator."""
        self.part.unlink(missing_ok=True)
        self.note.unlink(missing_ok=True)
