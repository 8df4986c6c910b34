#!/usr/bin/env python3
"""Compares the steps per second of one worker with the connection and with long polls.

Usage: scripts/worker-transports.py PROGRAM [EXECUTIONS [CONCURRENT]]

Starts a server without a worker of its own on an empty SQLite file, and one worker. Runs executions of a
chain of 20 `noop` steps and of a fan-out, alternating between the two transports, and prints one JSON line
per run and the ratio of the medians.
"""

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

CHAIN = 20
BRANCHES = 10
ROUNDS = 3


def playbook(name, steps):
    return (
        f"apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {{name: {name}, path: bench/{name}}}\nworkflow:\n"
        + "".join(steps)
    )


def chain():
    names = ["start"] + [f"s{n}" for n in range(1, CHAIN)]
    steps = []
    for name, after in zip(names, names[1:] + [None]):
        arcs = f", next: {{arcs: [{{step: {after}}}]}}" if after else ""
        steps.append(f"  - {{step: {name}, tool: {{kind: noop}}{arcs}}}\n")
    return playbook("chain", steps)


def fan():
    arcs = ", ".join(f"{{step: b{n}}}" for n in range(BRANCHES))
    steps = [f"  - {{step: start, tool: {{kind: noop}}, next: {{spec: {{mode: inclusive}}, arcs: [{arcs}]}}}}\n"]
    steps += [f"  - {{step: b{n}, tool: {{kind: noop}}, next: {{arcs: [{{step: end}}]}}}}\n" for n in range(BRANCHES)]
    steps.append("  - {step: end, tool: {kind: noop}}\n")
    return playbook("fan", steps)


STEPS = {"chain": CHAIN, "fan": BRANCHES + 2}


class Server:
    def __init__(self, program, place):
        self.process = subprocess.Popen(
            [program, "dev", "--auth", "open", "--slots", "0", "--port", "0", "--data", place],
            stderr=subprocess.PIPE,
            text=True,
        )
        for line in self.process.stderr:
            found = re.search(r"http://127\.0\.0\.1:\d+", line)
            if found:
                self.base = found.group()
                break
        else:
            sys.exit("the server did not start")
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def ask(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, {"content-type": "application/json"})
        with urllib.request.urlopen(request) as response:
            return json.load(response)


def run(server, name, count, concurrent):
    """Runs executions, `concurrent` at a time. Returns the steps per second."""
    remaining = iter(range(count))
    lock = threading.Lock()

    def client():
        while True:
            with lock:
                if next(remaining, None) is None:
                    return
            body = {"path": f"bench/{name}"}
            id = server.ask("/api/execute", body)["execution_id"]
            while not server.ask(f"/api/executions/{id}/status")["completed"]:
                time.sleep(0.005)

    began = time.monotonic()
    clients = [threading.Thread(target=client) for _ in range(concurrent)]
    for one in clients:
        one.start()
    for one in clients:
        one.join()
    return count * STEPS[name] / (time.monotonic() - began)


def main():
    program = sys.argv[1]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 200
    levels = [int(sys.argv[3])] if len(sys.argv) > 3 else [1, 16]
    with tempfile.TemporaryDirectory() as place:
        server = Server(program, place)
        found = {}
        try:
            for text in (chain(), fan()):
                server.ask("/api/catalog/register", {"content": text})
            for number in range(ROUNDS):
                for transport in ("connection", "long_poll"):
                    worker = subprocess.Popen(
                        [program, "worker", "--server", server.base, "--name", f"{transport}-{number}"],
                        env={**os.environ, "NOETL_WORKER_TRANSPORT": transport},
                        stderr=subprocess.DEVNULL,
                    )
                    try:
                        run(server, "chain", 5, 1)
                        for name in STEPS:
                            for level in levels:
                                rate = run(server, name, count if level > 1 else max(count // 8, 1), level)
                                found.setdefault((name, level, transport), []).append(rate)
                                print(json.dumps({"playbook": name, "concurrent": level, "transport": transport,
                                                  "steps_per_second": round_to(rate)}), flush=True)
                    finally:
                        worker.terminate()
                        worker.wait()
        finally:
            server.process.terminate()
            server.process.wait()
        for name in STEPS:
            for level in levels:
                pushed, polled = (statistics.median(found[name, level, it]) for it in ("connection", "long_poll"))
                print(json.dumps({"playbook": name, "concurrent": level, "ratio": round(pushed / polled, 3)}))


def round_to(rate):
    return float(f"{rate:.4g}")


if __name__ == "__main__":
    main()
