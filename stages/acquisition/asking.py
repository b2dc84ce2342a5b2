"""One GET by httpx: the environment's proxy, a watchdog that hangs up at the deadline, and what a
reply says of itself (RFC 9110). httpx is imported where something is asked for. Seconds and bytes.
"""

import contextlib
import email.utils
import logging
import re
import socket
import ssl
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from stages.acquisition.sources import public
from stages.errors import InputError

if TYPE_CHECKING:
    import httpx


def again() -> Any:
    """The library that tries once more. InputError where it is not installed."""
    try:
        import tenacity
    except ImportError:
        raise InputError(
            "a download needs the library tenacity",
            found="it is not installed",
            remedy="`pip install -c constraints.txt -e '.[lab,downloads]'`",
        ) from None
    return tenacity


@contextlib.contextmanager
def get(
    url: str, headers: dict[str, str], silence_s: float, left_s: Callable[[], float]
) -> Iterator["httpx.Response"]:
    """The reply to one request, redirects not followed. A watchdog hangs up when nothing is left
    of `left_s()`, so that no trickle can outlast it: httpx's own limit holds for each read alone.
    InputError for a proxy that speaks no HTTP."""
    import httpx

    for name in ("httpx", "httpcore"):  # below a warning they log whole URLs, secrets too
        logging.getLogger(name).setLevel(logging.WARNING)
    with contextlib.ExitStack() as stack:

        def watch(event: str, told: dict[str, Any]) -> None:
            if event == "connection.connect_tcp.complete":
                # A second descriptor of the connection, for TLS takes the first one over.
                plain = stack.enter_context(told["return_value"].get_extra_info("socket").dup())
                watchdog = threading.Timer(max(0.0, left_s()), hang_up, [plain])
                watchdog.daemon = True
                watchdog.start()
                stack.callback(watchdog.cancel)

        client = httpx.Client(
            verify=ssl.create_default_context(),
            proxy=proxy(url),
            timeout=max(0.01, min(silence_s, left_s())),
            trust_env=False,  # it fails at addresses of IPv6 in NO_PROXY
        )
        asked = stack.enter_context(client).stream
        yield stack.enter_context(asked("GET", url, headers=headers, extensions={"trace": watch}))


def proxy(url: str) -> str | None:
    """The environment's https proxy, where there is one for this URL."""
    parts, named = urlsplit(url), urllib.request.getproxies().get("https")
    if not named or parts.scheme == "http" or urllib.request.proxy_bypass(parts.hostname or ""):
        return None
    if "//" in named and not named.startswith(("http://", "https://")):
        raise InputError("the proxy in https_proxy speaks no HTTP", found=public(named))
    return named if "//" in named else f"http://{named}"


def hang_up(plain: socket.socket) -> None:
    """Wake a read that is blocked on this connection, whatever descriptor it reads from."""
    with contextlib.suppress(OSError):
        plain.shutdown(socket.SHUT_RDWR)


def cause(error: BaseException) -> BaseException:
    """The system's own error beneath one of httpx, where there is one."""
    while not isinstance(error, OSError) and (beneath := error.__cause__ or error.__context__):
        error = beneath
    return error


def strong(etag: str | None) -> str | None:
    """A strong entity tag, or None: a weak one does not promise equal bytes."""
    return etag if etag and re.fullmatch(r'"[\x21\x23-\x7e]*"', etag) else None


def extent(response: "httpx.Response") -> tuple[int, int | None]:
    """(first byte, whole length or None) of what a 200 or 206 carries."""
    if response.status_code != 206:
        length = response.headers.get("Content-Length")
        return 0, None if length is None or "Transfer-Encoding" in response.headers else int(length)
    found = re.fullmatch(
        r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18})", response.headers.get("Content-Range", "").strip()
    )
    return (int(found[1]), int(found[3])) if found else (-1, None)


def body(response: "httpx.Response", most: int) -> Iterator[bytes]:
    """At most that many bytes, as they come. Where the whole length is known, a body that breaks
    off just ends: whoever takes it counts."""
    import httpx

    try:
        for block in response.iter_raw():
            yield block[:most]
            if (most := most - len(block)) <= 0:
                return
    except httpx.RemoteProtocolError:
        if extent(response)[1] is None:
            raise


def retry_after_s(text: str) -> float:
    """Seconds a server asks us to wait: a number or an HTTP date; 0 for anything else."""
    if re.fullmatch(r"\s*\d{1,9}\s*", text):
        return float(text)
    with contextlib.suppress(TypeError, ValueError):
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    return 0.0
