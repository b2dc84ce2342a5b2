"""One GET over https: the connection, through a proxy where there is one, a watchdog that hangs up
at the deadline, and what a reply says of itself (RFC 9110). Seconds and bytes.
"""

import contextlib
import email.utils
import http.client
import re
import socket
import ssl
import threading
import time
import urllib.request
from base64 import b64encode
from collections.abc import Callable, Iterator
from urllib.parse import unquote, urlsplit


@contextlib.contextmanager
def get(
    url: str, headers: dict[str, str], silence_s: float, left_s: Callable[[], float]
) -> Iterator[http.client.HTTPResponse]:
    """The reply to one request, redirects not followed. A watchdog hangs up when nothing is left
    of `left_s()`, so that no trickle can outlast it."""
    opened = connection(url, max(0.01, min(silence_s, left_s())))
    with contextlib.closing(opened):
        opened.connect()
        watchdog = threading.Timer(max(0.0, left_s()), hang_up, [opened.sock])
        watchdog.daemon = True
        watchdog.start()
        try:
            parts = urlsplit(url)
            target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            opened.request("GET", target, headers=headers)
            yield opened.getresponse()
        finally:
            watchdog.cancel()


def connection(url: str, timeout: float) -> http.client.HTTPConnection:
    """A connection to the URL's host, through the environment's https proxy where there is one."""
    parts = urlsplit(url)
    if parts.scheme == "http":
        return http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout)
    context = ssl.create_default_context()
    proxy = urllib.request.getproxies().get("https")
    if not proxy or urllib.request.proxy_bypass(parts.hostname):
        return http.client.HTTPSConnection(parts.hostname, 443, timeout=timeout, context=context)
    via = urlsplit(proxy if "//" in proxy else f"//{proxy}")
    secret = f"{unquote(via.username)}:{unquote(via.password or '')}" if via.username else ""
    tunnel = http.client.HTTPSConnection(
        via.hostname, via.port or 8080, timeout=timeout, context=context
    )
    tunnel.set_tunnel(
        parts.hostname,
        443,
        {"Proxy-Authorization": "Basic " + b64encode(secret.encode()).decode()} if secret else {},
    )
    return tunnel


def hang_up(sock: socket.socket) -> None:
    """Wake a read that is blocked on this socket (the plain socket's shutdown: TLS has nothing
    more to say)."""
    with contextlib.suppress(OSError):
        socket.socket.shutdown(sock, socket.SHUT_RDWR)


def strong(etag: str | None) -> str | None:
    """A strong entity tag, or None: a weak one does not promise equal bytes."""
    return etag if etag and re.fullmatch(r'"[\x21\x23-\x7e]*"', etag) else None


def extent(response: http.client.HTTPResponse) -> tuple[int, int | None]:
    """(first byte, whole length or None) of what a 200 or 206 carries."""
    if response.status != 206:
        return 0, response.length
    found = re.fullmatch(
        r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18})", response.headers.get("Content-Range", "").strip()
    )
    return (int(found[1]), int(found[3])) if found else (-1, None)


def retry_after_s(text: str) -> float:
    """Seconds a server asks us to wait: a number or an HTTP date; 0 for anything else."""
    if re.fullmatch(r"\s*\d{1,9}\s*", text):
        return float(text)
    with contextlib.suppress(TypeError, ValueError):
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    return 0.0
