"""A proxy before a tracking server that fails as it is told, and processes to kill."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PASS, DROP, HANG = "pass", "drop", "hang"


class FaultyProxy:
    """Forwards to a server; ``fault(method, path, number)`` says what to do with each request.

    It answers with PASS, DROP (the connection is closed without a word), HANG (no answer until the end), or a status
    such as 500 or 429.
    """

    def __init__(self, port: int) -> None:
        self.fault: Callable[[str, str, int], Any] = lambda *_: PASS
        self.requests: list[tuple[str, str]] = []
        self.headers: list[dict[str, str]] = []
        self.connections = 0
        self._target, self._ended = port, threading.Event()
        handler = type("Handler", (_Handler,), {"proxy": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._ended.set()
        self._server.shutdown()
        self._server.server_close()

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        self.requests.append((handler.command, handler.path))
        self.headers.append(dict(handler.headers))
        what = self.fault(handler.command, handler.path, len(self.requests))
        if what == HANG:
            self._ended.wait()
        if what in (DROP, HANG):
            handler.close_connection = True
            handler.connection.close()
            return
        if what != PASS:
            self._reply(handler, int(what), b'{"error_code": "INTERNAL_ERROR", "message": "made up"}', {})
            return
        connection = http.client.HTTPConnection("127.0.0.1", self._target, timeout=60)
        headers = {k: v for k, v in handler.headers.items() if k.lower() not in ("host", "connection")}
        path = handler.path
        if "://" in path:  # it is asked as a forward proxy: for whatever host, the target answers
            path = "/" + path.split("://", 1)[1].partition("/")[2]
        connection.request(handler.command, path, body, headers)
        reply = connection.getresponse()
        kept = {k: v for k, v in reply.getheaders() if k.lower() in ("content-type", "content-disposition")}
        self._reply(handler, reply.status, reply.read(), kept)
        connection.close()

    @staticmethod
    def _reply(handler: BaseHTTPRequestHandler, status: int, content: bytes, headers: dict[str, str]) -> None:
        handler.send_response(status)
        for name, value in ({"Content-Type": "application/json"} | headers).items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    proxy: FaultyProxy

    def setup(self) -> None:
        self.proxy.connections += 1
        super().setup()

    def do_GET(self) -> None:
        self.proxy.answer(self)

    do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_GET

    def log_message(self, *_: Any) -> None:
        pass
