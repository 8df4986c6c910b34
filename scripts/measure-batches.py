#!/usr/bin/env python3
"""Measures batches of rows about an execution of the server itself, on a private Postgres.

usage: scripts/measure-batches.py PROGRAM [ROWS..]     (10000 and 50000 rows by default)

Prints, for each number of rows, how long the first batch took, and the same batch again, of which every row is a
duplicate. Needs Postgres (scripts/setup.sh installs it).
"""

import base64
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

TOKEN = "measure-batches-internal-token"
PLAYBOOK = """apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: waits, path: measure/waits}
workflow:
  - {step: start, tool: {kind: shell, command: 'true'}}
"""


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def post(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), method="POST")
    request.add_header("content-type", "application/json")
    request.add_header("authorization", "Bearer " + TOKEN)
    with urllib.request.urlopen(request, timeout=300) as response:
        return json.load(response)


def await_server(url, server):
    for _ in range(600):
        if server.poll() is not None:
            sys.exit(f"the server ended with exit code {server.returncode}")
        try:
            urllib.request.urlopen(url + "/health", timeout=5).close()
            return
        except OSError:
            time.sleep(0.1)
    sys.exit("the server didn't answer within a minute")


def measure(url, count):
    execution = int(post(url + "/api/execute", {"path": "measure/waits"})["execution_id"])
    first = execution + 10_000_000
    rows = [
        {
            "event_id": first + number,
            "execution_id": execution,
            "event_type": "note",
            "node_name": "start",
            "result": {"status": "ok", "context": {"n": number}},
        }
        for number in range(count)
    ]
    times = []
    for expected in ({"projected": count, "duplicates": 0}, {"projected": 0, "duplicates": count}):
        since = time.monotonic()
        reply = post(url + "/api/internal/events/project", {"events": rows})
        times.append(time.monotonic() - since)
        if reply != expected:
            sys.exit(f"expected {expected}, got {str(reply)[:500]}")
    print(f"{count:>8} rows: {times[0]:6.2f} s   again: {times[1]:6.2f} s", flush=True)


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    program = os.path.realpath(sys.argv[1])
    counts = [int(count) for count in sys.argv[2:]] or [10_000, 50_000]
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    with tempfile.TemporaryDirectory() as home:
        # Postgres runs as a user of its own, which has to enter the directory.
        os.chmod(home, 0o755)
        place = os.path.join(home, "postgres")
        started = subprocess.run(
            ["scripts/services/postgres.sh", "start", place], check=True, capture_output=True, text=True
        )
        server = None
        try:
            port = free_port()
            key = base64.b64encode(os.urandom(32)).decode()
            environment = {**os.environ, "NOETL_INTERNAL_API_TOKEN": TOKEN, "NOETL_ENCRYPTION_KEY": key}
            command = [program, "server", "--port", str(port), "--database-url", started.stdout.strip()]
            quiet = subprocess.DEVNULL
            server = subprocess.Popen(command, cwd=home, env=environment, stdout=quiet, stderr=quiet)
            url = f"http://127.0.0.1:{port}"
            await_server(url, server)
            post(url + "/api/catalog/register", {"content": PLAYBOOK})
            for count in counts:
                measure(url, count)
        finally:
            if server is not None:
                server.terminate()
                server.wait()
            subprocess.run(["scripts/services/postgres.sh", "remove", place], check=False)


if __name__ == "__main__":
    main()
