"""The report is one page with everything inside: it draws, filters and saves, and asks nobody for anything."""

import base64
import hashlib
import json
import re
import shutil

import pytest

from steppe.experiments import Measured
from steppe.report import Plot, markdown, page

ROW = Measured("p/<c>", "Thm 1", "a < b & c", "≥ 1", 1.25, "holds", False, "smoke", 0.1, "5 seeds")
MISPRINT = Measured("p/eq-printed", "Eq. 1", "x^2", "1", 2.0, "fails", True, "smoke", 0.1, "")
FAILED = Measured("p/gone", "Fig. 1", "it falls", "< 1", 3.0, "fails", False, "smoke", 0.1, "")
SERIES = {"x": [1, 2], "y": [3.0, 4.0], "kind": "line", "colour": "blue", "label": "</script><script>alert(1)"}
PLOT = Plot("p/fig1", "<b>", "smoke", "panels", {"title": "T", "panels": [{"x": "x", "y": "y", "series": [SERIES]}]})


def test_text_is_escaped_and_nothing_is_loaded():
    html = page([ROW, MISPRINT, FAILED], [PLOT], version="1", needs={"p/<c>": ["p/fig1"]})
    assert "p/&lt;c&gt;" in html
    assert "a &lt; b &amp; c" in html
    assert "alert(1)" in html
    assert "<script>alert" not in html
    assert not re.search(r'\s(src|href)="(?!data:|#)', html.split("<script", maxsplit=1)[0])


def test_only_the_scripts_of_the_page_may_run():
    html = page([ROW], [PLOT], version="1")
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)[1]
    scripts = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    assert len(scripts) == 4
    for script in scripts:
        assert base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() in policy
    assert "unsafe-eval" not in policy
    assert "default-src 'none'" in policy


def test_misprints_are_not_failures():
    html = page([ROW, MISPRINT, FAILED], [], version="1")
    assert "1 hold</b>" in html
    assert "1 fail</b>" in html
    assert "1 of 1 misprints" in html
    first = html.index("What falls short")
    assert first < html.index('href="#p/gone"') < html.index('<section class="paper"') < html.index('id="p/eq-printed"')


def test_a_claim_stands_beside_its_figure():
    html = page([FAILED, ROW], [PLOT], version="1", needs={"p/<c>": ["p/fig1"]})
    assert html.index('id="figure-p-fig1"') < html.index('id="p/&lt;c&gt;"') < html.index('id="p/gone"')


def test_the_specs_have_the_plotted_numbers():
    html = page([], [PLOT], version="1")
    (spec,) = json.loads(re.search(r'id="specs">(.*?)</script>', html, re.DOTALL)[1])
    assert [(row["x"], row["y"]) for row in spec["data"]["values"]] == [(1, 3.0), (2, 4.0)]


def test_markdown():
    assert markdown([ROW]).splitlines()[2] == "| p/<c> | Thm 1 | a < b & c | ≥ 1 | 1.25 | ✓ holds | 5 seeds |"


CHROMIUM = shutil.which("chromium")


@pytest.fixture
def browser():
    sync = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    with sync.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found.new_page(viewport={"width": 1200, "height": 900}, accept_downloads=True)
        found.close()


def test_the_page_works(browser, tmp_path):
    file = tmp_path / "report.html"
    file.write_text(page([ROW, MISPRINT, FAILED], [PLOT], version="1"), encoding="utf-8")
    heard = []
    browser.on("console", lambda message: heard.append(message.text))
    browser.on("pageerror", lambda error: heard.append(str(error)))
    browser.on(
        "request",
        lambda request: None if request.url.startswith(("file:", "data:", "blob:")) else heard.append(request.url),
    )
    browser.goto(file.as_uri())
    browser.locator(".chart").scroll_into_view_if_needed()
    browser.wait_for_selector(".chart[data-drawn] svg")
    assert "3 of 3" in browser.locator("#count").inner_text()
    browser.locator("input[value=misprint]").uncheck()
    assert "2 of 3" in browser.locator("#count").inner_text()
    browser.locator("#words").fill("it falls")
    assert "1 of 3" in browser.locator("#count").inner_text()
    for kind, begins in (("csv", b"series,x,y"), ("svg", b"<svg"), ("png", b"\x89PNG")):
        with browser.expect_download() as saved:
            browser.locator(f"button[data-save={kind}]").click()
        path = tmp_path / saved.value.suggested_filename
        saved.value.save_as(path)
        assert path.read_bytes().startswith(begins)
    browser.locator("summary").click()
    browser.wait_for_selector("details table")
    assert browser.locator("details table tr").count() == 1 + len(PLOT.numbers["panels"][0]["series"][0]["x"])
    assert [one for one in heard if not one.startswith(("file:", "data:", "blob:"))] == []
