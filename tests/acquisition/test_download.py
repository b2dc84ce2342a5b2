"""Downloads against a server that misbehaves in every way we know of."""

import os
import resource
import subprocess
import sys
from email.utils import formatdate

import pytest
from downloads import BODY, NEW, ROOT, get, names

from stages.acquisition import download
from stages.acquisition.download import Limits
from stages.errors import DownloadError


def test_a_sound_file_arrives_and_is_not_asked_for_again(server, replies, pin, place):
    server.script["/file.csv"] = [replies.whole(BODY)]
    for _ in range(2):
        get(pin(server.url(), BODY), place)
        assert place.read_bytes() == BODY
        assert names(place) == ["file.csv"]
    assert server.ranges() == [None]


@pytest.mark.parametrize("failures", [[500], [502, 503, 504], [429, 500, 408]])
@pytest.mark.fault("F8")
def test_server_errors_are_retried(server, replies, pin, place, failures):
    server.script["/file.csv"] = [*(replies.status(code) for code in failures), replies.whole(BODY)]
    get(pin(server.url(), BODY), place)
    assert place.read_bytes() == BODY
    assert len(server.seen) == len(failures) + 1


@pytest.mark.fault("F8")
def test_retries_are_bounded(server, replies, pin, place, clock):
    server.script["/file.csv"] = [replies.status(500)]
    with pytest.raises(DownloadError, match="failed 4 times") as error:
        get(pin(server.url(), BODY), place)
    assert "HTTP 500" in error.value.found and "TRADEWIND_MIRROR" in error.value.remedy
    assert len(server.seen) == 4 and clock() < 1.5
    assert not place.exists()


@pytest.mark.parametrize("code", [400, 401, 403, 404, 410, 304])
def test_refusals_are_not_retried(server, replies, pin, place, code):
    server.script["/file.csv"] = [replies.status(code)]
    with pytest.raises(DownloadError, match=f"HTTP {code}"):
        get(pin(server.url(), BODY), place)
    assert len(server.seen) == 1


@pytest.mark.fault("F8")
def test_retry_after_is_honoured_within_the_deadline(server, replies, pin, place, clock):
    server.script["/file.csv"] = [replies.status(429, Retry_After=1), replies.whole(BODY)]
    get(pin(server.url(), BODY), place)
    assert 1.0 <= clock() < 2.0
    place.unlink()
    server.script["/file.csv"] = [replies.status(503, Retry_After=3600), replies.whole(BODY)]
    with pytest.raises(DownloadError, match="asks to wait 3600 s"):
        get(pin(server.url(), BODY), place)
    assert clock() < 0.5, "a wait that cannot end in time is not begun"
    server.script["/file.csv"] = [replies.status(503, Retry_After=formatdate(4e9, usegmt=True))]
    with pytest.raises(DownloadError, match="asks to wait"):
        get(pin(server.url(), BODY), place)


@pytest.mark.fault("F3", "F8")
def test_a_short_body_is_continued_where_it_broke(server, replies, pin, place):
    server.script["/file.csv"] = [replies.whole(BODY, stop=10_000), replies.whole(BODY)]
    get(pin(server.url(), BODY), place)
    assert place.read_bytes() == BODY
    assert server.ranges() == [None, "bytes=10000-"]
    assert server.seen[1][1]["If-Range"] == '"v1"'


def test_a_weak_etag_is_no_validator_but_the_length_is(server, replies, pin, place):
    server.script["/file.csv"] = [
        replies.whole(BODY, etag='W/"v1"', stop=10_000),
        replies.whole(BODY, etag='W/"v1"'),
    ]
    get(pin(server.url(), BODY), place)
    assert place.read_bytes() == BODY
    assert server.ranges() == [None, "bytes=10000-"] and "If-Range" not in server.seen[1][1]


@pytest.mark.parametrize("honest", [True, False])
@pytest.mark.fault("F3", "F8")
def test_an_etag_that_changes_midway_begins_anew(server, replies, pin, place, honest):
    """Honest servers answer 200 with the new file; a dishonest one continues with the new file's
    bytes."""
    server.script["/file.csv"] = [
        replies.whole(NEW, stop=10_000),
        replies.whole(BODY, etag='"v2"', honest=honest),
    ]
    get(pin(server.url(), BODY), place)
    assert place.read_bytes() == BODY
    assert server.ranges() == [None, "bytes=10000-"] + [None] * (not honest)


@pytest.mark.fault("F3")
def test_another_etag_is_another_file_even_if_the_bytes_would_fit(server, replies, pin, place):
    server.script["/file.csv"] = [
        replies.whole(BODY, stop=10_000),
        replies.whole(BODY, etag='"v2"', honest=False),
    ]
    get(pin(server.url(), BODY), place)
    assert place.read_bytes() == BODY
    assert server.ranges() == [None, "bytes=10000-", None]


@pytest.mark.fault("F3")
def test_a_mixture_under_one_validator_is_fetched_anew(server, replies, pin, place):
    """No ETag and equal lengths: only the digest can tell; the mixture must not be called an
    upstream change."""
    server.script["/file.csv"] = [
        replies.whole(NEW, etag=None, stop=10_000),
        replies.whole(BODY, etag=None),
    ]
    get(pin(server.url(), BODY), place)
    assert place.read_bytes() == BODY
    assert server.ranges() == [None, "bytes=10000-", None]


@pytest.mark.fault("F3")
def test_a_range_that_is_not_had_begins_anew(server, replies, pin, place):
    server.script["/file.csv"] = [
        replies.whole(BODY, stop=10_000),
        replies.status(416),
        replies.whole(BODY),
    ]
    get(pin(server.url(), BODY), place)
    assert place.read_bytes() == BODY and server.ranges() == [None, "bytes=10000-", None]


@pytest.mark.parametrize("kind", ["stall", "trickle", "slow_header"])
@pytest.mark.fault("F8")
def test_silence_and_slowness_end_at_the_deadline(server, replies, pin, place, clock, kind):
    reply = {
        "stall": replies.stall,
        "trickle": replies.trickle(0.05),
        "slow_header": replies.slow_header,
    }[kind]
    server.script["/file.csv"] = [reply]
    with pytest.raises(DownloadError):
        get(
            pin(server.url(), BODY),
            place,
            limits=Limits(
                total_s=1.0,
                silence_s=0.3,
                attempts=100,
                backoff_s=0.01,
                backoff_max_s=0.02,
                speed_window_s=0.2,
                speed_min_bytes_s=1000,
            ),
        )
    assert clock() < 1.6
    assert not place.exists()
    if kind != "slow_header":
        assert len(server.seen) >= 2, "a stalled reply is given up and asked for again"


@pytest.mark.fault("F8")
def test_one_attempt_may_not_outlast_the_deadline_by_trickling(server, replies, pin, place, clock):
    """Fast enough for the minimum speed and never silent: only the total deadline stops it."""
    server.script["/file.csv"] = [replies.trickle(0.01)]
    with pytest.raises(DownloadError, match="did not end in time"):
        get(
            pin(server.url(), BODY),
            place,
            limits=Limits(
                total_s=0.6, silence_s=5, attempts=9, speed_window_s=0.2, speed_min_bytes_s=1
            ),
        )
    assert clock() < 1.2


@pytest.mark.fault("F8")
def test_an_endless_body_stops_at_the_cap(server, replies, pin, place, clock):
    server.script["/file.csv"] = [replies.endless]
    with pytest.raises(DownloadError, match="larger than it may be"):
        get(pin(server.url(), BODY, bytes=None, bytes_max=50_000), place)
    assert clock() < 1.5 and names(place) == []


@pytest.mark.fault("F8")
def test_an_announced_length_over_the_cap_is_not_read(server, replies, pin, place):
    server.script["/file.csv"] = [replies.whole(BODY * 2)]
    with pytest.raises(DownloadError, match="80000 bytes announced"):
        get(pin(server.url(), BODY), place)
    assert len(server.seen) == 1 and names(place) == []


@pytest.mark.fault("F6")
def test_a_full_disk_is_an_error_that_frees_its_room(server, replies, pin, place):
    server.script["/file.csv"] = [replies.whole(BODY)]
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    try:
        with pytest.raises(DownloadError, match="does not hold the download"):
            get(pin(server.url(), BODY), place)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert names(place) == [] and len(server.seen) == 1
    get(pin(server.url(), BODY), place)
    assert place.read_bytes() == BODY


@pytest.mark.fault("F6")
def test_no_room_is_found_out_before_the_body(server, replies, pin, place, monkeypatch):
    server.script["/file.csv"] = [replies.whole(BODY)]
    monkeypatch.setattr(
        download.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 1000})()
    )
    with pytest.raises(DownloadError, match="40000 bytes are still to come"):
        get(pin(server.url(), BODY), place)


CHILD = """
import sys
from pathlib import Path
from types import SimpleNamespace
import httpx
from stages.acquisition.download import Limits, fetch
url, sha256, size, place = sys.argv[1:]
came = httpx.Response.iter_raw  # a network that gives 8 KiB at a time
httpx.Response.iter_raw = lambda reply: (
    block[at : at + 8192] for block in came(reply) for at in range(0, len(block), 8192)
)
fetch(SimpleNamespace(url=url, sha256=sha256, md5=None, bytes=int(size), bytes_max=None), \
Path(place), loopback=True,
      limits=Limits(total_s=10, silence_s=2))
"""


@pytest.mark.parametrize(
    "point", ["part_begun", "part_block", "part_whole", "before_rename", "after_rename"]
)
@pytest.mark.fault("F3")
def test_killed_at_any_moment_the_file_is_whole_or_absent(
    server, replies, pin, tmp_path, monkeypatch, point
):
    """SIGKILL at the n-th passage of each point, n upwards until it no longer fires; the next
    run must mend all."""
    monkeypatch.chdir(tmp_path)
    server.script["/file.csv"] = [replies.whole(BODY)]
    source = pin(server.url(), BODY)
    for n in range(1, 60):
        place = tmp_path / str(n) / "file.csv"
        child = subprocess.run(
            [sys.executable, "-c", CHILD, source.url, source.sha256, str(source.bytes), str(place)],
            env=os.environ | {"FAULT": f"{point}:{n}", "PYTHONPATH": str(ROOT)},
            check=False,
        )
        if child.returncode == 0:
            break
        assert child.returncode == -9
        found = {
            path.name: path for path in place.parent.iterdir() if not path.name.endswith(".tmp")
        }
        assert set(found) <= {"file.csv", "file.csv.part", "file.csv.part.json"}
        assert "file.csv" not in found or place.read_bytes() == BODY
        part = found["file.csv.part"].read_bytes() if "file.csv.part" in found else b""
        assert BODY.startswith(part)
        server.seen.clear()
        get(source, place, limits=Limits(total_s=10, silence_s=2))
        assert place.read_bytes() == BODY
        assert names(place) == ["file.csv"], "nothing of the killed run is left"
        whole = "file.csv" in found or part == BODY
        continued = part and "file.csv.part.json" in found
        assert server.ranges() == ([] if whole else [f"bytes={len(part)}-" if continued else None])
    assert n > 1, "the point was never passed"
    assert child.returncode == 0 and place.read_bytes() == BODY
