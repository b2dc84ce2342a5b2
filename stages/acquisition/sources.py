"""What a pinned source promises and which URLs may be asked for (OWASP's rules against server-side
request forgery).

https only, no user information, default port, and a host that equals one on the list: compared on
the parsed host, because a test on the text's beginning takes `https://zenodo.org@elsewhere` for
zenodo.org. A URL is shown without what may be secret in it. A file is the pinned one when its size
(where given) and its digest (sha256, else git's name of it, else md5) are.
"""

import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from stages.params import Source

HOSTS = frozenset(
    {  # every host a pinned file may come from; DaRUS answers with a redirect to its store
        "raw.githubusercontent.com",
        "s3.amazonaws.com",
        "zenodo.org",
        "darus.uni-stuttgart.de",
        "s3.tik.uni-stuttgart.de",
        "dl.fbaipublicfiles.com",
        "nlp.stanford.edu",
        "huggingface.co",
    }
)
GIT = "git_blob"
LOOPBACK = frozenset({"127.0.0.1", "::1"})  # plain http, and only where a test asks for it


def public(url: str) -> str:
    """The URL as it may be shown: no user information, no query, no fragment."""
    try:
        parts = urlsplit(url)
        host = f"{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}"
    except ValueError:
        return "(a URL that cannot be parsed)"
    return f"{parts.scheme}://{host}{parts.path}{'?(hidden)' if parts.query else ''}"


def objection(url: str, hosts: frozenset[str] = HOSTS, loopback: bool = False) -> str:
    """Why this URL may not be asked for, or "". Judged on the parsed parts, never on a prefix of
    the text."""
    if not url.isascii() or re.search(r"[\x00-\x20\x7f\\]", url):
        return "it holds a blank, a backslash, a control or a non-ASCII character"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return "it cannot be parsed"
    if "@" in parts.netloc:
        return "it carries user information"
    if loopback and parts.scheme == "http" and host in LOOPBACK:
        return ""
    if parts.scheme != "https":
        return f"its scheme is {parts.scheme!r}, not https"
    if host not in hosts:
        return f"its host {host!r} is not on the list ({', '.join(sorted(hosts))})"
    return "" if port in (None, 443) else f"its port is {port}, not 443"


def pinned(source: "Source") -> tuple[str, str]:
    """(algorithm, hex digest) a file must have; no sha256 only where none is published."""
    if source.sha256:
        return "sha256", source.sha256
    return (GIT, source.git_blob) if source.git_blob else ("md5", source.md5)


def digest(path: Path, algorithm: str) -> str:
    """Hex digest of a file's bytes, read from disk. GIT: the name that git has for them as a blob,
    the sha1 of their number and of themselves."""

    def begun() -> "hashlib._Hash":
        if algorithm != GIT:
            return hashlib.new(algorithm, usedforsecurity=False)
        return hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)

    with path.open("rb") as stream:
        return hashlib.file_digest(stream, begun).hexdigest()


def matches(path: Path, source: "Source") -> bool:
    """True when the file has the pinned size (where one is given) and the pinned digest."""
    algorithm, expected = pinned(source)
    return source.bytes in (None, path.stat().st_size) and digest(path, algorithm) == expected
