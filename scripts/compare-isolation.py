#!/usr/bin/env python3
"""Compares the time of no-op shell and Python steps at two isolation levels.

usage: scripts/compare-isolation.py PROGRAM [--levels 0 2] [--rounds 5] [--steps 300]

Each run is `noetl run` of a sequential loop. The time of one step is that of a loop of STEPS items less that of a loop
of one item, by STEPS - 1: what the program takes to start, and a warm interpreter to be made, does not count. Levels take
turns, so that a slow minute of the machine meets both. Prints one JSON line for each tool: the medians in milliseconds,
and the ratio of the second level to the first.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

TOOLS = {
    "shell": "{kind: shell, command: 'true'}",
    "python": "{kind: python, code: 'result = {}'}",
}


def playbook(tool, steps):
    return f"""apiVersion: noetl.io/v2
kind: Playbook
metadata: {{name: steps, path: compare/steps}}
workflow:
  - step: start
    loop: {{in: '{{{{ range({steps}) | list }}}}', iterator: n, spec: {{mode: sequential}}}}
    tool: {TOOLS[tool]}
"""


def seconds(program, level, tool, steps):
    with tempfile.TemporaryDirectory(prefix="noetl-compare-") as directory:
        path = os.path.join(directory, "steps.yaml")
        with open(path, "w") as file:
            file.write(playbook(tool, steps))
        environment = {**os.environ, "HOME": directory, "NOETL_STEP_ISOLATION": str(level)}
        begin = time.monotonic()
        run = subprocess.run([program, "run", path], cwd=directory, env=environment, capture_output=True, text=True)
        taken = time.monotonic() - begin
        if run.returncode != 0:
            sys.exit(f"{tool} at level {level}: {run.stderr}{run.stdout}")
        return taken


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("program")
    arguments.add_argument("--levels", nargs=2, type=int, default=[0, 2], help="levels to compare (default: 0 2)")
    arguments.add_argument("--rounds", type=int, default=5, help="runs of each loop (default: 5)")
    arguments.add_argument("--steps", type=int, default=300, help="steps of the long loop (default: 300)")
    given = arguments.parse_args()
    program = os.path.abspath(given.program)
    for tool in TOOLS:
        times = {level: [] for level in given.levels}
        for _ in range(given.rounds):
            for level in given.levels:
                taken = seconds(program, level, tool, given.steps) - seconds(program, level, tool, 1)
                times[level].append(taken / (given.steps - 1) * 1000)
        first, second = (statistics.median(times[level]) for level in given.levels)
        line = {"tool": tool, "milliseconds": [round(first, 2), round(second, 2)], "ratio": round(second / first, 2)}
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
