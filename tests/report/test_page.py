"""The report is one page with everything inside."""

import re

from steppe.experiments import Measured
from steppe.report import markdown, page

ROW = Measured("p/<c>", "Thm 1", "a < b & c", "≥ 1", 1.25, "holds", False, "smoke", 0.1, "5 seeds")


def test_html(tmp_path):
    png = tmp_path / "a.png"
    png.write_bytes(b"\x89PNG not really")
    html = page([ROW], [("caption <x>", png)], version="1")
    assert "p/&lt;c&gt;" in html
    assert "a &lt; b &amp; c" in html
    assert "data:image/png;base64," in html
    assert not re.search(r'(src|href)="(?!data:)', html)
    assert "1 of 1 claims" in html


def test_markdown():
    assert markdown([ROW]).splitlines()[2] == "| p/<c> | Thm 1 | a < b & c | ≥ 1 | 1.25 | ✓ holds | 5 seeds |"
