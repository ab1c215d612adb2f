"""The explorer's server: read-only, for this machine, and nothing outside the store can be asked for."""

import json
import shutil

import numpy as np
import pytest
from cases.toy_specs import Count
from starlette.testclient import TestClient

from steppe.report._server import MOST, app
from steppe.store import Computed, Store

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture
def store(tmp_path):
    found = Store(tmp_path / "runs")
    curves = {"step": np.arange(3 * MOST), "loss": np.r_[np.nan, np.linspace(1, 0, 3 * MOST - 1)]}
    found.compute(Count(1), lambda _: Computed(curves, {}, {"outcome": HOSTILE, "value": float("inf"), "list": [1, 2]}))
    found.compute(Count(2), lambda _: Computed({"step": np.arange(2)}, {}, {"outcome": "reached"}))
    (tmp_path / "secret.json").write_text('{"password": "hunter2"}')
    return found


@pytest.fixture
def client(store):
    return TestClient(app(store), base_url="http://localhost:8765", follow_redirects=False)


def test_runs_are_listed_and_listed_again_only_if_they_changed(client, store):
    found = client.get("/api/runs").json()
    assert sorted(run["id"] for run in found["runs"]) == store.ids()
    (hostile,) = [run for run in found["runs"] if run["outcome"] == HOSTILE]
    assert hostile["result"] == {"outcome": HOSTILE, "list": "[1, 2]"}  # JSON has no infinity
    assert "runs" not in client.get("/api/runs", params={"since": found["stamp"]}).json()
    store.remove(hostile["id"])
    assert len(client.get("/api/runs", params={"since": found["stamp"]}).json()["runs"]) == 1


def test_a_run_and_its_curves(client, store):
    for id in store.ids():
        about = client.get(f"/api/runs/{id}").json()
        assert about["id"] == id
        assert json.dumps(about["spec"]) == json.dumps(dict(store.open(id).spec))
    long = next(id for id in store.ids() if len(store.open(id).curves["step"]) > MOST)
    curves = client.get(f"/api/runs/{long}/curves").json()
    assert len(curves["step"]) == len(curves["loss"]) == MOST
    assert (curves["step"][0], curves["step"][-1], curves["loss"][0], curves["loss"][-1]) == (0, 3 * MOST - 1, None, 0)


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/explore/xor.html",
        "/explore/plot.js",
        "/static/explorer.js",
        "/static/explorer.css",
        "/static/vega.min.js",
    ],
)
def test_pages_have_a_strict_policy_and_no_cors(client, path):
    answer = client.get(path, headers={"Origin": "http://evil.example"})
    assert answer.status_code == 200
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert not any(name.startswith("access-control") for name in answer.headers)


@pytest.mark.parametrize(
    "path",
    [
        "/api/runs/../../secret.json", "/api/runs/..%2f..%2fsecret.json", "/api/runs/%2e%2e", "/api/runs/.work",
        "/api/runs/..%5csecret.json", "/api/runs/%00", "/api/runs/nothing", "/api/runs/" + "a" * 20, "/api/runs/.index",
        "/static/../_server.py", "/static/..%2f_server.py", "/static/VEGA-LICENSE.txt", "/static//etc/passwd",
        "/x.json",
    ],
)  # fmt: skip
def test_nothing_else_can_be_read(client, path):
    answer = client.get(path)
    assert 400 <= answer.status_code < 500
    assert "hunter2" not in answer.text


def test_a_link_out_of_the_store_is_not_followed(client, store, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "spec.json").write_text('{"password": "hunter2"}')
    (store.root / ("b" * 20)).symlink_to(outside)
    assert client.get("/api/runs/" + "b" * 20).status_code == 404
    assert "hunter2" not in client.get("/api/runs").text


def test_a_file_of_a_run_that_is_a_link_is_not_read(client, store, tmp_path):
    id = store.ids()[0]
    (store.root / id / "result.json").unlink()
    (store.root / id / "result.json").symlink_to(tmp_path / "secret.json")
    assert "hunter2" not in client.get(f"/api/runs/{id}").text
    assert "hunter2" not in client.get("/api/runs").text


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "", "127.0.0.1.nip.io:8765", "[::1"])
def test_other_names_for_this_machine_are_refused(client, host):
    assert client.get("/api/runs", headers={"Host": host}).status_code == 421


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:1", "[::1]:8765"])
def test_local_names_are_known(client, host):
    assert client.get("/api/runs", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_it_is_read_only(client, method):
    assert client.request(method, "/api/runs").status_code == 405


def test_a_token_is_asked_for(store):
    client = TestClient(
        app(store, hosts=frozenset({"lab"}), token="abc"), base_url="http://lab:1", follow_redirects=False
    )
    assert client.get("/api/runs").status_code == 401
    assert client.get("/", params={"token": "abd"}).status_code == 401
    entered = client.get("/", params={"token": "abc"})
    assert entered.status_code == 303
    assert entered.headers["location"] == "/"
    assert "HttpOnly" in entered.headers["set-cookie"]
    assert client.get("/api/runs").status_code == 200


def test_hostile_names_are_text_in_the_page(store, tmp_path):
    """In a real browser, against a real server."""
    sync = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed")
    import threading

    import uvicorn

    server = uvicorn.Server(uvicorn.Config(app(store), port=0, log_config=None))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        thread.join(0.05)
    port = server.servers[0].sockets[0].getsockname()[1]
    heard = []
    with sync.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1200, "height": 800})
        page.on("dialog", lambda dialog: heard.append("dialog"))
        page.on("pageerror", lambda error: heard.append(str(error)))
        page.on("request", lambda request: heard.append(request.url) if "localhost" not in request.url else None)
        page.goto(f"http://localhost:{port}/#words=onerror&y=loss")
        page.wait_for_selector("#body input[type=checkbox]")
        assert page.locator("#count").inner_text() == "1 of 2 runs"
        assert HOSTILE in page.locator("#body").inner_text()
        page.locator("#body input[type=checkbox]").check()
        page.wait_for_selector("#chart svg")
        assert "picked=" in page.url
        page.reload()
        page.wait_for_selector("#chart svg")
        browser.close()
    server.should_exit = True
    thread.join(5)
    assert [one for one in heard if not one.startswith("blob:")] == []
