"""An HTTP service for playbooks to call."""

import collections
import http.server
import json
import threading

BEARER = "published-test-token"


class Handler(http.server.BaseHTTPRequestHandler):
    calls = collections.Counter()

    def do_GET(self):  # noqa: N802
        parts = self.path.strip("/").split("/")
        if parts[0] == "status":
            self.reply(int(parts[1]), {"status": int(parts[1])})
        elif parts[0] == "flaky":
            # /flaky/<key>/<failures>: fails so many times, then succeeds.
            self.calls[parts[1]] += 1
            calls = self.calls[parts[1]]
            self.reply(503 if calls <= int(parts[2]) else 200, {"calls": calls})
        elif parts[0] == "bearer":
            known = self.headers.get("authorization") == f"Bearer {BEARER}"
            self.reply(200 if known else 401, {"welcome": known})
        else:
            self.reply(404, {})

    def reply(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


def start():
    """Starts the service and returns its URL."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_address[1]}"
