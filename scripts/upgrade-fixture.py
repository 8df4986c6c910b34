"""Lets a program fill a database, and writes the database as SQL with a JSON file of its contents.

usage: upgrade-fixture.py sqlite|postgres PROGRAM COMMIT LOCATION

Statuses in the JSON file come from the program's API, counts from the database. A document that the
program does not accept, because its version does not have that feature, is left out and reported.
"""

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request

HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: %s, path: fixture/%s}\nworkflow:\n"

# Executions that end before the program stops.
ENDED = {
    "chain": (
        "  - {step: a, tool: {kind: noop, result: {n: 1}}, next: {arcs: [{step: b}]}}\n"
        "  - {step: b, tool: {kind: python, code: \"result = {'text': 'x' * 20}\"}}\n"
    ),
    "join": (
        "  - {step: a, tool: {kind: noop, result: 1}, next: {spec: {mode: inclusive},"
        " arcs: [{step: b}, {step: c}]}}\n"
        "  - {step: b, tool: {kind: noop, result: 2}, next: {arcs: [{step: d}]}}\n"
        "  - {step: c, tool: {kind: noop, result: 3}, next: {arcs: [{step: d}]}}\n"
        "  - {step: d, tool: {kind: noop, result: '{{ b }} {{ c }}'}}\n"
    ),
    "failing": "  - {step: a, tool: {kind: python, code: 'raise ValueError(1)'}}\n",
    "loop": (
        "  - step: a\n"
        "    loop: {in: '{{ [1, 2, 3] }}', iterator: number, spec: {mode: parallel}}\n"
        "    tool: {kind: noop, result: '{{ number }}'}\n"
        "    next: {arcs: [{step: b}]}\n"
        "  - {step: b, tool: {kind: noop, result: 1}}\n"
    ),
    "large": (
        "  - {step: a, tool: {kind: python, code: \"result = {'text': 'x' * 9000}\"},"
        " next: {arcs: [{step: b}]}}\n"
        "  - {step: b, tool: {kind: noop, result: '{{ a.text | length }}'}}\n"
    ),
}

# Executions that are running when the program stops: one waits for a worker, one for a timer.
RUNNING = {
    "pending": (
        "  - {step: a, tool: {kind: noop, result: 1}, next: {arcs: [{step: b}]}}\n"
        "  - {step: b, tool: {kind: noop, result: '{{ a }}'}}\n"
    ),
    "waiting": (
        "  - {step: a, tool: {kind: wait, seconds: 30}, next: {arcs: [{step: b}]}}\n"
        "  - {step: b, tool: {kind: noop, result: 1}}\n"
    ),
}

KEY = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="


class Program:
    """A running program of the version that writes the fixture."""

    def __init__(self, path, location, slots):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        command = [path, "dev", "--port", str(port), "--slots", str(slots), "--database-url", location]
        environment = dict(os.environ, NOETL_ENCRYPTION_KEY=KEY, NOETL_AUTH="open")
        self.process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
        self.until(self.is_healthy)

    def ask(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"content-type": "application/json"})
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=30) as answer:
            return json.load(answer)

    def is_healthy(self):
        if self.process.poll() is not None:
            sys.exit("the program stopped while starting")
        try:
            return self.ask("/api/health") is not None
        except OSError:
            return False

    @staticmethod
    def until(condition):
        deadline = time.monotonic() + 60
        while not condition():
            if time.monotonic() > deadline:
                sys.exit("the program did not get there within 60 s")
            time.sleep(0.1)

    def start(self, name, steps):
        """Starts an execution, or returns None if this version does not accept the document."""
        try:
            self.ask("/api/catalog/register", {"content": HEAD % (name, name) + steps})
            answer = self.ask("/api/execute", {"path": f"fixture/{name}", "payload": {}})
            return str(answer["execution_id"])
        except urllib.error.HTTPError as error:
            if error.code not in (400, 422):
                raise
            print(f"  left out: {name}: {error.read().decode()[:200]}", file=sys.stderr)
            return None

    def status(self, execution):
        return self.ask(f"/api/executions/{execution}/status")["status"]

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)


def fill(program, location):
    """Fills a database, and returns the status of each execution by its ID."""
    first = Program(program, location, 4)
    started = {first.start(name, steps): name for name, steps in ENDED.items()}
    started.pop(None, None)
    first.ask("/api/credentials", {"name": "fixture", "type": "bearer", "data": {"token": "secret"}})
    Program.until(lambda: all(first.status(id) != "RUNNING" for id in started))
    found = {id: (name, first.status(id)) for id, name in started.items()}
    first.stop()
    # Without a worker in the process a command stays pending.
    second = Program(program, location, 0)
    for name, steps in RUNNING.items():
        execution = second.start(name, steps)
        if execution is not None:
            found[execution] = (name, second.status(execution))
    second.stop()
    return found


def dump_sqlite(path):
    database = sqlite3.connect(path)
    one = lambda sql: database.execute(sql).fetchone()[0]
    version = one("pragma user_version")
    lines = [
        "pragma foreign_keys = off;",
        f"pragma page_size = {one('pragma page_size')};",
        *database.iterdump(),
        f"pragma application_id = {one('pragma application_id')};",
        f"pragma user_version = {version};",
    ]
    count = lambda table: one(f"select count(*) from {table}")
    events = dict(database.execute("select execution_id, count(*) from event group by 1"))
    return version, "\n".join(lines) + "\n", count("credential"), events


def dump_postgres(url):
    def psql(sql):
        command = ["psql", "-X", "-A", "-t", "-F", " ", "-v", "ON_ERROR_STOP=1", "-c", sql, url]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()

    command = ["pg_dump", "--schema=noetl", "--no-owner", "--no-privileges", "--inserts", url]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    # Commands of psql, and the versions of the tools, are no part of the database.
    lines = [line for line in text.splitlines() if not line.startswith(("\\", "-- Dumped"))]
    version = int(psql("select max(version) from noetl.schema_migration")[0])
    numbers = [int(text) for text in psql("select execution_id, count(*) from noetl.event group by 1")]
    events = dict(zip(numbers[::2], numbers[1::2]))
    return version, "\n".join(lines) + "\n", int(psql("select count(*) from noetl.credential")[0]), events


def main():
    kind, program, commit, location = sys.argv[1:]
    url = f"sqlite://{location}" if kind == "sqlite" else location
    found = fill(program, url)
    version, text, credentials, events = (dump_sqlite if kind == "sqlite" else dump_postgres)(location)
    executions = [
        {"id": id, "playbook": name, "status": status, "events": events[int(id)]}
        for id, (name, status) in sorted(found.items())
    ]
    contents = {"commit": commit, "schema": version, "credentials": credentials, "executions": executions}
    stem = f"crates/noetl-store-{kind}/tests/fixtures/v{version:02}-{commit[:7]}"
    os.makedirs(os.path.dirname(stem), exist_ok=True)
    with open(stem + ".sql", "w", encoding="utf-8") as file:
        file.write(text)
    with open(stem + ".json", "w", encoding="utf-8") as file:
        json.dump(contents, file, indent=2)
        file.write("\n")
    print(f"  {stem}.sql: {len(text)} bytes, {len(executions)} executions", file=sys.stderr)


main()
