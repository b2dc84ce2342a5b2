"""Downloads against a server that misbehaves in every way we know of."""

import hashlib
import os
import random
import resource
import subprocess
import sys
from email.utils import formatdate
from pathlib import Path

import pytest

from stages.acquisition import download, sources
from stages.acquisition.download import Limits, fetch
from stages.errors import DownloadError, InputError

BODY = random.Random(5).randbytes(40_000)
NEW = random.Random(6).randbytes(40_000)
QUICK = Limits(
    total_s=2.0,
    silence_s=0.3,
    attempts=4,
    backoff_s=0.02,
    backoff_max_s=0.05,
    speed_window_s=0.2,
    speed_min_bytes_s=1000,
    block_bytes=8192,
)
ROOT = Path(__file__).parents[2]


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path / "in" / "file.csv"


def get(source, place, **changes):
    fetch(source, place, limits=changes.pop("limits", QUICK), loopback=True, **changes)


def names(place):
    return sorted(path.name for path in place.parent.iterdir())


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


@pytest.mark.fault("F8")
def test_a_web_page_instead_of_the_file(server, replies, pin, place):
    server.script["/file.csv"] = [replies.page]
    with pytest.raises(DownloadError, match="a web page came"):
        get(pin(server.url(), BODY), place)
    assert len(server.seen) == 1 and names(place) == []
    disguised = b"<!doctype html><title>Sign in</title>"
    server.script["/file.csv"] = [replies.whole(disguised, Content_Type="text/csv")]
    with pytest.raises(DownloadError, match="a web page came"):
        get(pin(server.url(), BODY, bytes=None, bytes_max=50_000), place)
    assert names(place) == []


def test_a_page_does_not_cost_the_part(server, replies, pin, place):
    server.script["/file.csv"] = [replies.whole(BODY, stop=10_000), replies.page]
    with pytest.raises(DownloadError, match="a web page came"):
        get(pin(server.url(), BODY), place)
    server.script["/file.csv"] = [replies.whole(BODY)]
    get(pin(server.url(), BODY), place)
    assert place.read_bytes() == BODY and server.ranges()[-1] == "bytes=10000-"


@pytest.mark.parametrize("algorithm", ["sha256", "md5"])
@pytest.mark.fault("F9")
def test_a_wrong_digest_is_quarantined_and_explained(server, replies, pin, place, algorithm):
    server.script["/file.csv"] = [replies.whole(NEW)]
    expected, found = (hashlib.new(algorithm, body).hexdigest() for body in (BODY, NEW))
    changes = {} if algorithm == "sha256" else {"sha256": None, "md5": expected}
    with pytest.raises(DownloadError, match="not the pinned one") as error:
        get(pin(server.url(), BODY, **changes), place)
    assert expected in error.value.expected and found in error.value.found
    assert hashlib.sha256(NEW).hexdigest() in error.value.found
    assert found in error.value.remedy and "commit" in error.value.remedy
    kept = list(Path(".work/quarantine").iterdir())
    assert [path.read_bytes() for path in kept] == [NEW]
    assert names(place) == [], "neither the file nor a part of it"
    assert len(server.seen) == 1


@pytest.mark.fault("F9")
def test_a_spoilt_file_in_the_place_is_put_aside(server, replies, pin, place):
    place.parent.mkdir()
    place.write_bytes(NEW)
    server.script["/file.csv"] = [replies.whole(BODY)]
    get(pin(server.url(), BODY), place)
    assert place.read_bytes() == BODY
    assert [path.read_bytes() for path in Path(".work/quarantine").iterdir()] == [NEW]


def test_redirects_stay_on_the_list_and_the_scheme(server, replies, pin, place):
    server.script |= {
        "/file.csv": [replies.redirect("/moved/file.csv", 301)],
        "/moved/file.csv": [replies.redirect(server.url("/end"), 307)],
        "/end": [replies.whole(BODY)],
        "/round": [replies.redirect("/round")],
    }
    get(pin(server.url(), BODY), place)
    assert place.read_bytes() == BODY
    with pytest.raises(DownloadError, match="redirects"):
        get(pin(server.url("/round"), BODY), place.with_name("other"))


@pytest.mark.parametrize(
    "target",
    [
        "file:///etc/passwd",
        "ftp://127.0.0.1/x",
        "https://evil.example/x",
        "http://evil.example/x",
        "https://zenodo.org/x",
        "//evil.example/x",
        "http://127.0.0.1@evil.example/x",
        "http://user:word@127.0.0.1/x",
        "https://zenodo.org.evil.example/",
        "",
    ],
)
def test_redirects_elsewhere_are_refused(server, replies, pin, place, target):
    server.script["/file.csv"] = [replies.redirect(target)]
    with pytest.raises(DownloadError, match="redirect is refused") as error:
        get(pin(server.url(), BODY), place)
    assert len(server.seen) == 1 and "word" not in str(error.value)
    assert not place.exists()


@pytest.mark.parametrize(
    "url",
    [
        "http://zenodo.org/x",
        "https://evil.example/x",
        "https://zenodo.org@evil.example/x",
        "https://user:secret@zenodo.org/x",
        "https://zenodo.org.evil.example/x",
        "https://evil.example/https://zenodo.org/x",
        "https://evil.example#@zenodo.org/x",
        "https://evil.example\\@zenodo.org/x",
        "https://zenodo.org:8443/x",
        "https://zenodo.org:x/",
        "https://[::1/x",
        "file:///etc/passwd",
        "ftp://zenodo.org/x",
        "https:zenodo.org/x",
        "https:///x",
        "HTTPS://EVIL.example/x",
        "https://zenodo.org\r\nHost: x/",
        "https://zenod\u043e.org/x",
        "https://zenodo.org./x",
        "http://127.0.0.1/x",
        "http://localhost/x",
        "//zenodo.org/x",
        "zenodo.org/x",
        "data:text/csv,1",
    ],
)
def test_urls_that_are_refused_before_anything(pin, place, url):
    with pytest.raises(InputError, match="a URL is refused") as error:
        fetch(pin(url, BODY), place)
    assert error.value.exit_code == 2
    assert "secret" not in str(error.value) and not place.exists()


@pytest.mark.parametrize(
    "url",
    [
        "https://zenodo.org/record/5074237/files/SkySoft_WindSpeed.tar.gz",
        "https://ZENODO.org/x",
        "https://zenodo.org:443/x",
    ],
)
def test_urls_that_pass(url):
    assert sources.objection(url) == ""


def test_every_url_in_params_passes():
    from stages import params

    urls = [
        source.url
        for dataset in params.load(ROOT / "params.yaml").datasets.values()
        for source in dataset.files.values()
    ]
    assert urls and [url for url in urls if sources.objection(url)] == []


@pytest.mark.fault("F8", "F20")
def test_errors_keep_secrets(server, replies, pin, place):
    server.script["/file.csv"] = [replies.status(404)]
    with pytest.raises(DownloadError) as error:
        get(pin(server.url("/file.csv?token=hunter2#frag"), BODY), place)
    assert "hunter2" not in str(error.value) and "frag" not in str(error.value)
    assert "127.0.0.1" in error.value.where and "/file.csv" in error.value.where
    assert server.seen[0][0] == "/file.csv?token=hunter2", "the request itself carries it"


def test_a_dead_server_is_an_error_with_a_name(pin, place, server):
    url = server.url().replace(str(server.server_address[1]), "1")  # tcpmux: nobody listens there
    with pytest.raises(DownloadError, match="ConnectionRefusedError"):
        get(pin(url, BODY), place)


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
from stages.acquisition.download import Limits, fetch
url, sha256, size, place = sys.argv[1:]
fetch(SimpleNamespace(url=url, sha256=sha256, md5=None, bytes=int(size), bytes_max=None), \
Path(place), loopback=True,
      limits=Limits(total_s=10, silence_s=2, block_bytes=8192))
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
