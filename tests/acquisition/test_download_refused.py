"""What a download refuses: a page in place of the file, a wrong digest, an address elsewhere; and
the errors that tell it."""

import hashlib
import subprocess
from pathlib import Path

import pytest
from downloads import BODY, NEW, ROOT, get, names

from stages.acquisition import sources
from stages.acquisition.download import fetch
from stages.errors import DownloadError, InputError


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


def told(algorithm: str, body: bytes) -> str:
    """A digest by a program that is not ours."""
    if algorithm != "git_blob":
        return hashlib.new(algorithm, body).hexdigest()
    words = ["git", "hash-object", "--stdin"]
    return (
        subprocess.run(words, input=body, capture_output=True, check=True).stdout.decode().strip()
    )


@pytest.mark.parametrize("algorithm", ["sha256", "git_blob", "md5"])
@pytest.mark.fault("F9")
def test_a_wrong_digest_is_quarantined_and_explained(server, replies, pin, place, algorithm):
    server.script["/file.csv"] = [replies.whole(NEW), replies.whole(BODY)]
    expected, found = (told(algorithm, body) for body in (BODY, NEW))
    changes = {} if algorithm == "sha256" else {"sha256": None, algorithm: expected}
    with pytest.raises(DownloadError, match="not the pinned one") as error:
        get(pin(server.url(), BODY, **changes), place)
    assert expected in error.value.expected and found in error.value.found
    assert hashlib.sha256(NEW).hexdigest() in error.value.found
    assert found in error.value.remedy and "commit" in error.value.remedy
    kept = list(Path(".work/quarantine").iterdir())
    assert [path.read_bytes() for path in kept] == [NEW]
    assert names(place) == [], "neither the file nor a part of it"
    assert len(server.seen) == 1
    get(pin(server.url(), BODY, **changes), place)
    assert place.read_bytes() == BODY


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
