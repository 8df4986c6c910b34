#!/usr/bin/env python3
"""Compares the steps per second of two noetl programs, measured from outside.

usage: scripts/compare-programs.py FIRST SECOND [--rounds 3] [--executions 400]

Each round starts each program once as `noetl dev` on a new SQLite file and lets it run chains of 100 no-op steps. The
programs take turns, so that a slow minute of the machine meets both. Prints one JSON line for each run, then the median
of each program and the ratio SECOND / FIRST.
"""

import argparse
import base64
import concurrent.futures
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

STEPS = 100
PATH = "compare/chain"
FINISHED = re.compile(r'^noetl_executions_finished_total\{status="([a-z_]+)"\} (\d+)', re.MULTILINE | re.IGNORECASE)


def playbook():
    lines = [
        "apiVersion: noetl.io/v2",
        "kind: Playbook",
        f"metadata: {{name: chain, path: {PATH}}}",
        "workflow:",
    ]
    for number in range(1, STEPS + 1):
        name = "start" if number == 1 else f"s{number}"
        lines.append(f"  - step: {name}")
        lines.append("    tool: {kind: noop}")
        if number < STEPS:
            lines.append(f"    next: {{arcs: [{{step: s{number + 1}}}]}}")
    return "\n".join(lines) + "\n"


def call(base, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(base + path, data, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as response:
        return response.read().decode()


def finished(base):
    counts = {status.lower(): int(count) for status, count in FINISHED.findall(call(base, "/metrics"))}
    other = {status: count for status, count in counts.items() if status != "completed" and count > 0}
    if other:
        sys.exit(f"executions did not complete: {other}")
    return counts.get("completed", 0)


def listening_at(server):
    for line in server.stderr:
        found = re.search(r"noetl listens on (http://\S+)", line)
        if found:
            return found.group(1)
    sys.exit(f"{server.args[0]} ended before it listened")


def steps_per_second(program, executions):
    environment = {**os.environ, "NOETL_AUTH": "open"}
    with tempfile.TemporaryDirectory(prefix="noetl-compare-") as directory:
        command = [program, "dev", "--port", "0", "--data", f"{directory}/data", "--slots", "100"]
        server = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            base = listening_at(server)
            document = base64.b64encode(playbook().encode()).decode()
            call(base, "/api/catalog/register", {"content": document})
            begin = time.monotonic()
            with concurrent.futures.ThreadPoolExecutor(8) as callers:
                list(callers.map(lambda _: call(base, "/api/execute", {"path": PATH}), range(executions)))
            while finished(base) < executions:
                time.sleep(0.02)
            return executions * STEPS / (time.monotonic() - begin)
        finally:
            server.terminate()
            server.wait()


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("programs", nargs=2, metavar="PROGRAM")
    arguments.add_argument("--rounds", type=int, default=3, help="runs of each program (default: 3)")
    arguments.add_argument("--executions", type=int, default=400, help="executions of 100 steps per run (default: 400)")
    given = arguments.parse_args()
    rates = {program: [] for program in given.programs}
    for _ in range(given.rounds):
        for program in given.programs:
            rate = steps_per_second(program, given.executions)
            rates[program].append(rate)
            print(json.dumps({"program": program, "steps_per_second": round(rate)}), flush=True)
    first, second = (statistics.median(rates[program]) for program in given.programs)
    print(json.dumps({"first": round(first), "second": round(second), "ratio": round(second / first, 2)}))


if __name__ == "__main__":
    main()
