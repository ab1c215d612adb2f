"""What an audit looks like: one screen, strict JSON, one page that loads nothing and escapes every name."""

import json
import math
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from cases.planted_audits import planted

from steppe.auditing import Block, Check, Row, compare
from steppe.estimate import Estimate

HOSTILE = "</title><script>alert(1)</script>\"'&<img src=x onerror=alert(2)>"


def strict(text):
    def refuse(name):
        raise AssertionError(f"{name} is not JSON")

    return json.loads(text, parse_constant=refuse)


class Tags(HTMLParser):
    """All tags and attributes of a page."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))


def tags(text):
    parser = Tags()
    parser.feed(text)
    return parser.seen


@pytest.fixture(scope="module")
def hostile():
    """An audit whose every text comes from an attacker, with all figures."""
    e = Estimate(1.0, 0.9, 1.1, 0.99, 3)
    base = planted(HOSTILE, notes={"edge": HOSTILE})
    curves = {
        "density": {"grid": [-1.0, 0.0, 1.0], "density": [0.1, 1.0, 0.1], "stderr": [0.0, 0.1, 0.0], "matvecs": 8},
        "along": {"steps": [0.0, 1.0], "rise": [0.0, math.inf], "predicted": [0.0, 1.0], "critical": 0.5},
        "robustness": [("8 bits", 1e-3, 2e-3)],
    }
    return replace(
        base,
        rows=(*base.rows, Row(HOSTILE, HOSTILE, e, "probes", 0.5, note=HOSTILE)),
        blocks=(Block(HOSTILE, 1, 5, 1.0, e, None),),
        checks=(*base.checks, Check(HOSTILE, "fails", HOSTILE)),
        optimizer=HOSTILE,
        curves=curves,
    )


def test_the_page_stands_alone(hostile, tmp_path):
    text = hostile.to_html(tmp_path / "sub" / "page.html").read_text()
    seen = tags(text)
    assert {tag for tag, _ in seen}.isdisjoint({"script", "link", "iframe", "object", "embed", "base", "form"})
    outside = re.sub(r"base64,[^\"]*", "", text)
    assert not re.search(r"https?:|//[a-z]|url\(|@import", outside)
    sources = [attributes["src"] for tag, attributes in seen if tag == "img"]
    assert len(sources) == 3
    assert all(source.startswith("data:image/png;base64,") for source in sources)
    assert not [name for _, attributes in seen for name in attributes if name.startswith("on")]


def test_names_are_text(hostile, tmp_path):
    text = hostile.to_html(tmp_path / "page.html").read_text()
    assert "<script" not in text
    assert text.count("<img src=x") == 0
    assert "&lt;script&gt;alert(1)" in text
    both = compare({HOSTILE: hostile, "b<b>": planted("b", sharpness=20.0)})
    text = both.to_html(tmp_path / "both.html").read_text()
    assert "<script" not in text
    assert "b<b>" not in text


def test_json_has_the_shape_of_the_contract(hostile):
    found = strict(planted(loss=math.nan, sharpness=math.inf).to_json())
    assert {"estimates", "checks", "reading"} <= set(found)
    assert all(set(e) == {"value", "lower", "upper", "confidence", "matvecs"} for e in found["estimates"].values())
    assert found["estimates"]["loss"]["value"] is None
    assert all(set(check) == {"name", "verdict", "detail"} for check in found["checks"])
    assert {check["verdict"] for check in found["checks"]} <= {"holds", "fails", "not-run"}
    assert isinstance(found["reading"], str)
    errors = strict(hostile.to_json())["errors"]
    assert errors[HOSTILE] == {"solver": 0.0, "probes": pytest.approx(0.1), "data": 0.5}
    both = strict(compare([planted("a"), planted("b", sharpness=20.0)]).to_json())
    assert set(both) == {"audits", "comparison", "reading"}
    assert both["comparison"][0]["order"] == ["a", "b"]


def test_one_screen(hostile):
    text = str(planted(notes={"edge": "no optimiser was given " * 10}))
    lines = text.splitlines()
    assert len(lines) < 60
    assert max(map(len, lines)) <= 120
    assert "sharpness" in text
    assert "– edge: no optimiser was given" in text
    assert "✗" in str(hostile)


def test_columns():
    table = planted(width=0.1).table()
    assert {len(column) for column in table.values()} == {len(table["name"])}
    row = table["name"].tolist().index("sharpness")
    assert table["value"][row] == 10.0
    assert table["lower"][row] == pytest.approx(9.0)


def test_side_by_side():
    text = str(compare([planted("a", width=0.01), planted("b", width=0.01, sharpness=20.0)]))
    line = next(line for line in text.splitlines() if line.startswith("sharpness "))
    assert line.split() == ["sharpness", "10", "20", "a", "yes"]
