import pytest
from chromium import Chromium

from fabricated_study import Fake, make_settings, write_study
from windtunnel.records.trial import Verdict
from windtunnel.report.run import run_report

pytestmark = pytest.mark.browser

HOSTILE = '<img src=http://127.0.0.1:9/x onerror="window.harmed=1"><script>window.harmed=1</script>'
FAKES = (
    Fake("alpha", 0.80, 900.0),
    Fake("beta", 0.70, 12000.0),
    Fake("gamma", 0.90, 30000.0),
    Fake("broken", verdict=Verdict.FAILED, evidence=HOSTILE),
    Fake(HOSTILE, 0.95, 100.0),
)
NAMES = "[...document.querySelectorAll('#ranking tbody tr:not([hidden]) td:nth-child(2)')].map(c => c.textContent)"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    inputs = write_study(tmp_path_factory.mktemp("study"), FAKES)
    run_report(make_settings(), **inputs)
    return inputs["out"]


@pytest.fixture(scope="module")
def browser():
    with Chromium() as browser:
        yield browser


@pytest.fixture
def opened(browser, page):
    browser.events.clear()
    browser.open(page)
    browser.wait_for("document.querySelectorAll('.main-svg').length > 0")
    return browser


def press(browser, heading):
    browser.evaluate(
        f"[...document.querySelectorAll('#ranking th button')].find(b => b.textContent === {heading!r}).click()"
    )


def test_page_opens_from_a_file_without_errors_and_asks_for_nothing_else(opened, page):
    assert opened.errors() == []
    assert [url for url in opened.requests() if not url.startswith(("data:", "blob:"))] == [page.resolve().as_uri()]


def test_every_figure_is_drawn(opened):
    assert opened.evaluate("document.querySelectorAll('[data-figure]').length") == 4
    assert opened.evaluate("[...document.querySelectorAll('[data-figure]')].every(f => f.querySelector('.main-svg'))")
    assert opened.evaluate("document.querySelectorAll('[data-figure=loss-by-step] .scatterlayer .trace').length") == 5


def test_markup_in_names_and_causes_stays_text(opened):
    assert opened.evaluate("window.harmed") is None
    assert opened.evaluate("document.querySelectorAll('main img').length") == 0
    assert HOSTILE in opened.evaluate(NAMES)
    assert opened.evaluate(f"document.getElementById('failures').textContent.includes({HOSTILE!r})")


def test_a_heading_sorts_numbers_as_numbers_both_ways_with_the_unmeasured_last(opened):
    assert opened.evaluate(NAMES) == ["beta", "alpha", "gamma", HOSTILE, "broken"]
    press(opened, "Samples/s")
    assert opened.evaluate(NAMES) == [HOSTILE, "alpha", "beta", "gamma", "broken"]
    press(opened, "Samples/s")
    assert opened.evaluate(NAMES) == ["gamma", "beta", "alpha", HOSTILE, "broken"]
    assert (
        opened.evaluate("document.querySelector('#ranking th[aria-sort]').getAttribute('aria-sort')") == "descending"
    )
    press(opened, "Trial")
    assert opened.evaluate(NAMES)[1:] == ["alpha", "beta", "broken", "gamma"]


def test_filters_hide_other_trials_and_say_how_many_are_left(opened):
    opened.evaluate(
        "{const f = document.getElementById('filter-text'); f.value = 'ALPH'; f.dispatchEvent(new Event('input'))}"
    )
    assert opened.evaluate(NAMES) == ["alpha"]
    assert opened.evaluate("document.getElementById('filter-count').textContent") == "1 of 5 trials"
    opened.evaluate("document.getElementById('filter-text').value = ''")
    opened.evaluate(
        "{const v = document.getElementById('filter-verdict'); v.value = 'FAILED';"
        " v.dispatchEvent(new Event('change'))}"
    )
    assert opened.evaluate(NAMES) == ["broken"]


def test_the_theme_button_changes_page_and_figures(opened):
    look = (
        "[getComputedStyle(document.body).backgroundColor,"
        " document.querySelector('[data-figure=loss-by-step] .xtick text').style.fill]"
    )
    before = opened.evaluate(look)
    opened.evaluate("document.getElementById('theme').click()")
    opened.wait_for(f"JSON.stringify({look}[1]) !== JSON.stringify({before[1]!r})")
    assert opened.evaluate(look)[0] != before[0]


def test_page_fits_a_narrow_window(opened):
    size = {"height": 900, "deviceScaleFactor": 1, "mobile": False}
    opened.call("Emulation.setDeviceMetricsOverride", width=420, **size)
    try:
        opened.wait_for("document.documentElement.scrollWidth <= document.documentElement.clientWidth", within_s=5)
    finally:
        opened.call("Emulation.clearDeviceMetricsOverride")
