"""The explorer: a store in the browser, as it is now. Read-only; it answers this machine, unless it is told otherwise.

Every answer is made from the store. A request names a run by its address and a file by a fixed list, so that nothing
else of the disk can be asked for.
"""

import hmac
import json
import re
import threading
from collections.abc import Mapping
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from steppe.store import StoreError, indexed

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from steppe.store import Store

_FILES = {
    "explorer.css": "text/css",
    "explorer.js": "text/javascript",
    "vega.min.js": "text/javascript",
    "vega-lite.min.js": "text/javascript",
    "vega-interpreter.js": "text/javascript",
}
_PAGES = ("diagonal", "relu", "rescaling", "xor")
_EXPLORE = {"plot.js", "start.js", "explore.css"} | {f"{page}.{kind}" for page in _PAGES for kind in ("html", "js")}
_KINDS = {"html": "text/html", "js": "text/javascript", "css": "text/css"}
_LOCAL = frozenset({"localhost", "127.0.0.1", "[::1]"})
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "connect-src 'self'; img-src data: blob:; form-action 'none'; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_COOKIE = "steppe"
# A curve of more points is thinned.
MOST = 1500


def app(store: "Store", *, hosts: frozenset[str] = frozenset(), token: str | None = None) -> "Starlette":
    """The application. It answers requests for localhost and for `hosts`, with a `token` only those that know it."""
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.middleware import Middleware
    from starlette.middleware.gzip import GZipMiddleware
    from starlette.requests import Request
    from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
    from starlette.routing import Route

    listing = _Listing(store)

    def static(name: str, kind: str) -> Response:
        text = files("steppe.report").joinpath("static", name).read_text(encoding="utf-8")
        return Response(text, media_type=kind)

    async def index(request: Request) -> Response:
        return static("explorer.html", "text/html")

    async def packaged(request: Request) -> Response:
        name = request.path_params["name"]
        return static(name, _FILES[name]) if name in _FILES else PlainTextResponse("no such file", 404)

    async def explore(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in _EXPLORE:
            return PlainTextResponse("no such page", 404)
        return static(f"explore/{name}", _KINDS[name.rpartition(".")[2]])

    async def runs(request: Request) -> Response:
        return Response(
            await run_in_threadpool(listing.json, request.query_params.get("since")), media_type="application/json"
        )

    async def run(request: Request) -> Response:
        return JSONResponse(await run_in_threadpool(described, store, request.path_params["id"]))

    async def curves(request: Request) -> Response:
        return JSONResponse(await run_in_threadpool(thinned_curves, store, request.path_params["id"]))

    async def refused(request: Request, error: Exception) -> Response:
        return JSONResponse({"error": str(error)}, 404)

    class Guard:
        """Refuses what does not come from a page of this server, before anything else sees it."""

        def __init__(self, inner: Any):
            self.inner = inner

        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] != "http":
                await self.inner(scope, receive, send)
                return
            request = Request(scope)
            answer = self.refusal(request)
            if answer is not None:
                answer.headers.update(_HEADERS)
                await answer(scope, receive, send)
                return

            async def with_headers(message: Any) -> None:
                if message["type"] == "http.response.start":
                    message["headers"] += [(k.lower().encode(), v.encode()) for k, v in _HEADERS.items()]
                await send(message)

            await self.inner(scope, receive, with_headers)

        def refusal(self, request: Request) -> Response | None:
            # A page of another site that has resolved its name to this address (DNS rebinding) sends its own name.
            host = re.sub(r":\d+$", "", request.headers.get("host", ""))
            if host not in _LOCAL | hosts:
                return PlainTextResponse("unknown host", 421)
            if request.method not in {"GET", "HEAD"}:
                return PlainTextResponse("this server is read-only", 405, {"Allow": "GET, HEAD"})
            if token is None or _same(request.cookies.get(_COOKIE), token):
                return None
            if not _same(request.query_params.get("token"), token):
                return PlainTextResponse("the address needs ?token=…, as `steppe serve` has printed it", 401)
            # From here on the cookie is enough, and the token leaves the address bar.
            answer = RedirectResponse("/", 303)
            answer.set_cookie(_COOKIE, token, httponly=True, samesite="strict")
            return answer

    return Starlette(
        routes=[
            Route("/", index),
            Route("/static/{name}", packaged),
            Route("/explore/{name}", explore),
            Route("/api/runs", runs),
            Route("/api/runs/{id}", run),
            Route("/api/runs/{id}/curves", curves),
        ],
        middleware=[Middleware(Guard), Middleware(GZipMiddleware, minimum_size=2000)],
        exception_handlers={StoreError: refused},
    )


def _same(given: str | None, token: str) -> bool:
    return given is not None and hmac.compare_digest(given.encode(), token.encode())


class _Listing:
    """All runs as JSON, made anew when the store has changed."""

    def __init__(self, store: "Store"):
        self.store, self.lock = store, threading.Lock()

    def json(self, since: str | None) -> bytes:
        """{"stamp", "runs"}; without the runs if nothing has changed since that stamp."""
        with self.lock, indexed(self.store) as db:
            (stamp,) = db.execute("SELECT md5(string_agg(id || stamp, ',' ORDER BY id)) FROM runs").fetchone()
            stamp = stamp or "empty"
            if stamp == since:
                return json.dumps({"stamp": stamp}).encode()
            names = ("id", "kind", "seed", "version", "finished", "seconds", "outcome", "spec", "result", "damaged")
            rows = db.execute(f"SELECT {', '.join(names)} FROM runs ORDER BY finished DESC, id").fetchall()
        runs = [_listed(dict(zip(names, row, strict=True))) for row in rows]
        return json.dumps({"stamp": stamp, "runs": runs}, ensure_ascii=False).encode()


def _listed(run: dict[str, Any]) -> dict[str, Any]:
    run["spec"] = _flat(json.loads(run["spec"])) if run["spec"] else {}
    result = _flat(json.loads(run["result"])) if run["result"] else {}
    run["result"] = {name: value for name, value in result.items() if isinstance(value, int | float | str)}
    return {name: _plain(value) for name, value in run.items()}


def _flat(value: Any, name: str = "") -> dict[str, Any]:
    """{"a": {"b": 1}, "c": [{"d": 2}], "e": [3, 4]} as {"a.b": 1, "c.0.d": 2, "e": "[3, 4]"}."""
    if isinstance(value, list) and value and all(isinstance(part, Mapping) for part in value):
        value = dict(enumerate(value))
    if isinstance(value, Mapping):
        parts = (_flat(part, f"{name}.{key}" if name else str(key)) for key, part in value.items())
        return {key: part for found in parts for key, part in found.items()}
    return {name: json.dumps(value, ensure_ascii=False) if isinstance(value, list) else value}


def _plain(value: Any) -> Any:
    """JSON has no NaN and no infinity."""
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    return str(value) if isinstance(value, float) and value - value != 0 else value


def described(store: "Store", id: str) -> dict[str, Any]:
    """What is known of one run, and the names of its curves."""
    entry = store.open(id)
    about = {name: entry.about.get(name) for name in ("versions", "command", "finished", "seconds")}
    found = {"id": entry.id, "spec": entry.spec, "result": entry.result, "columns": sorted(entry.curves)} | about
    plain: dict[str, Any] = json.loads(json.dumps(found, default=str), parse_constant=str)
    return plain


def thinned_curves(store: "Store", id: str) -> dict[str, list[float | None]]:
    """Every curve of one number a moment, with at most `MOST` moments, the first and the last among them."""
    import numpy as np

    found = {}
    for name, column in store.open(id).curves.items():
        if column.ndim == 1 and column.dtype.kind in "fiub":
            kept = np.unique(np.linspace(0, len(column) - 1, min(MOST, len(column))).round().astype(int))
            found[name] = [float(v) if np.isfinite(v) else None for v in column[kept].astype(float)]
    return found
