"""steppe serve: the runs of a store in the browser."""

import secrets
from dataclasses import dataclass

from steppe.cli._shared import Flag, Stored


@dataclass(frozen=True)
class Serve(Stored):
    """Open the explorer over a store: a table of runs, curves, comparisons. Read-only; it updates by itself.

    It answers this machine alone. With --host and --expose it answers others that know the token it prints.

    Examples: steppe serve · steppe serve --store runs --port 9000 · steppe serve --host 0.0.0.0 --expose
    """

    host: str = "127.0.0.1"
    """Address to listen at."""
    port: int = 8765
    """Port to listen at; 0 for any free one."""
    expose: Flag = False
    """Allow an address that other machines reach."""
    name: tuple[str, ...] = ()
    """Names under which other machines know this one, for the check of the Host header."""
    open: Flag = False
    """Open the page in the browser."""

    def __call__(self) -> int:
        import socket

        from steppe.check import ArgumentError, integer

        if not 0 <= integer("--port", self.port, minimum=0) <= 65535:
            raise ArgumentError(f"--port must be from 0 to 65535; got {self.port}. Pass 0 for any free port.")
        local = self.host in {"127.0.0.1", "localhost", "::1"}
        if not local and not self.expose:
            raise ArgumentError(
                f"--host {self.host} lets other machines read the store. Add --expose if that is meant; "
                "a token is then asked for."
            )
        import uvicorn

        from steppe.report._server import app

        token = None if local else secrets.token_urlsafe(24)
        hosts = frozenset() if local else frozenset({self.host, socket.gethostname(), *self.name})
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        with socket.socket(family) as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind((self.host, self.port))
            except (OSError, ValueError) as error:
                reason = getattr(error, "strerror", None) or error
                raise ArgumentError(
                    f"cannot listen at {self.host!r}, port {self.port}: {reason}. Pass another --port, for example 0."
                ) from error
            shown = f"[{self.host}]" if family == socket.AF_INET6 else self.host
            address = f"http://{shown}:{listener.getsockname()[1]}/" + (f"?token={token}" if token else "")
            print(f"serving {self.opened().root} at {address} (Ctrl-C stops)", flush=True)
            if self.open:
                import webbrowser

                webbrowser.open(address)
            # A client that reads slowly or asks a lot does not stop the others.
            config = uvicorn.Config(
                app(self.opened(), hosts=hosts, token=token),
                log_config=None,  # uvicorn's own would close the handlers of others
                log_level="warning",
                limit_concurrency=200,
                timeout_keep_alive=5,
                h11_max_incomplete_event_size=16384,
            )
            server = uvicorn.Server(config)
            server.run(sockets=[listener])
        return 0
