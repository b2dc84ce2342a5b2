"""A page of an experiment in a real browser: its contents, tables that sort, charts that tell their
values."""

from pathlib import Path

import chromium
import pytest
from page_made import OWN, make

pytestmark = pytest.mark.skipif(
    chromium.PROGRAM is None, reason="no chromium is installed here: apt-get install chromium"
)
PLOT = "document.querySelector('figure.chart .plot')"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Where the page of the hand-made project stands."""
    with pytest.MonkeyPatch.context() as patch:
        make(tmp_path_factory.mktemp("charts"), patch)
        yield Path("reports", OWN).resolve()


@pytest.fixture(scope="module")
def browser():
    with chromium.browser() as opened:
        yield opened


@pytest.fixture
def page(browser, home):
    browser.size(1440)
    browser.scheme("light")
    browser.thrown.clear()
    browser.open(home)
    return browser


def test_the_contents_stay_in_sight_and_mark_what_is_read(page):
    assert page.ask("document.querySelectorAll('.contents a').length") >= 8
    last = "[...document.querySelectorAll('section.view h3')].at(-1)"
    page.ask(f"{last}.scrollIntoView()")
    page.ask("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert page.ask("document.querySelector('.contents').getBoundingClientRect().top") == 0
    marked = (
        "[...document.querySelectorAll('.contents [aria-current=true]')].map((one) => one.hash)"
    )
    assert page.ask(marked) == [f"#{page.ask(f'{last}.id')}"]
    assert page.thrown == []


def test_on_a_phone_the_contents_are_folded_and_open_by_keyboard(page):
    page.size(390, 844)
    page.open(Path(page.ask("location.pathname")))
    seen = "[...document.querySelectorAll('.contents a')].filter((one) => one.checkVisibility())"
    assert page.ask(f"{seen}.length") == 0
    page.ask("document.querySelector('.contents summary').focus()")
    page.press("Enter", 13, "\r")
    assert page.ask(f"{seen}.length") > 3
    page.press("Escape", 27)
    assert page.ask(f"{seen}.length") == 0
    page.press("Enter", 13, "\r")
    page.ask(f"{seen}.find((one) => one.hash === '#claims').click()")
    assert page.ask(f"{seen}.length") == 0
    top = page.ask("document.querySelector('#claims').getBoundingClientRect().top")
    bar = page.ask("document.querySelector('.contents').getBoundingClientRect().bottom")
    assert bar <= top < 844
    assert page.ask("document.documentElement.scrollWidth") <= 390


def test_on_a_phone_a_result_tells_its_number_first(page):
    page.size(390, 844)
    page.open(Path(page.ask("location.pathname")))
    boxes = page.ask(
        "[...document.querySelector('#results-table tr:nth-child(2)').cells].map((one) => "
        "[one.getBoundingClientRect().top, one.getBoundingClientRect().right])"
    )
    assert boxes[4][0] == boxes[1][0] < boxes[0][0] and boxes[4][1] <= 390


def test_every_table_sorts_by_a_title_numbers_by_size_and_what_is_missing_last(page):
    table = "document.querySelector('section.view [data-at] table')"
    column = f"[...{table}.tBodies[0].rows].map((row) => row.cells[2].textContent)"
    click = f"{table}.tHead.rows[0].cells[2].querySelector('button').click()"
    page.ask(f"{table}.tBodies[0].rows[1].cells[2].textContent = '–'")
    for sign in (1, -1):
        page.ask(click)
        told = page.ask(column)
        assert told[-1] == "–"
        values = [sign * float(one.split()[0]) for one in told[:-1]]
        assert values == sorted(values) and len(set(values)) > 1
    assert page.ask(f"{table}.tHead.rows[0].cells[2].ariaSort") == "descending"
    assert page.ask(
        "[...document.querySelectorAll('main table')].filter((one) => one.tBodies[0].rows.length "
        "> 2 && !one.querySelector('thead button')).length"
    ) == 0  # fmt: skip


def test_an_arrow_key_or_the_pointer_reads_values_and_a_name_switches_its_line(page):
    values = "[...document.querySelectorAll('figure.chart')][0].querySelectorAll('.legend .value')"
    texts = f"[...{values}].map((one) => one.textContent)"
    page.ask(f"{PLOT}.focus()")
    page.press("ArrowRight", 39)
    first = page.ask(texts)
    page.press("End", 35)
    last = page.ask(texts)
    told = page.ask(
        f"[...{PLOT}.querySelectorAll('.line[data-x]')].map((one) => one.dataset.y.split(' '))"
    )
    assert [float(one.replace(",", "")) for one in first[: len(told)]] == [
        float(one[0]) for one in told
    ]
    assert [float(one.replace(",", "")) for one in last[: len(told)]] == [
        float(one[-1]) for one in told
    ]
    at = page.ask(
        f"(() => {{ const b = {PLOT}.getBoundingClientRect(); return [b.left, b.top]; }})()"
    )
    page.call("Input.dispatchMouseEvent", type="mouseMoved", x=at[0] + 30, y=at[1] + 60)
    assert page.ask(texts) == first
    key = "document.querySelector('figure.chart .key')"
    line = f"getComputedStyle({PLOT}.querySelector('.line')).display"
    assert page.ask(line) != "none"
    page.ask(f"{key}.click()")
    assert page.ask(line) == "none" and page.ask(f"{key}.ariaPressed") == "false"
    page.ask(f"{key}.click()")
    assert page.ask(line) != "none" and page.thrown == []


def test_lines_are_lighter_at_night(page):
    strokes = (
        f"[...{PLOT}.querySelectorAll('.line :is(polyline, path)')].map((one) => "
        "getComputedStyle(one).stroke.match(/\\d+/g).reduce((sum, one) => sum + +one, 0))"
    )
    by_day = page.ask(strokes)
    page.scheme("dark")
    at_night = page.ask(strokes)
    assert all(night >= day for day, night in zip(by_day, at_night, strict=True))
    assert at_night != by_day


def test_words_choose_sections_and_enter_jumps_to_the_first(page):
    shown = (
        "[...document.querySelectorAll('section.view [data-at]')].filter((one) => "
        "one.checkVisibility()).map((one) => one.dataset.at.split('/')[2])"
    )
    everything = page.ask(shown)
    assert len(everything) == 2
    page.ask(
        "(() => { const one = document.querySelector('#f-words'); one.value = 'noise floor'; "
        "one.dispatchEvent(new Event('input', {bubbles: true})); one.focus(); })()"
    )
    assert page.ask(shown) == ["simulated"]
    page.press("Enter", 13, "\r")
    assert page.ask("document.activeElement.textContent") == "simulated"
    page.ask("document.querySelector('#clear').click()")
    assert page.ask(shown) == everything
