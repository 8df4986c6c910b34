#!/usr/bin/env python3
"""What a deployment of a given size needs, and what in it breaks first.

    docs/scaling.py                                  the figures of docs/scaling.md, for 10, 100, 1000 nodes
    docs/scaling.py --bench bench.jsonl              the same from lines that `make bench` printed
    docs/scaling.py --nodes 500 --slots 32 --step-seconds 0.5

Every input is a figure that was measured or a limit that is written down somewhere; nothing is fitted.
"""

import argparse
import json
import math
import sys

# Measured with `make bench` on two cores with everything on them.
MEASURED = {
    "steps_per_second": 4755.42,
    "cpu_ms_per_1000_steps": 144.73,
    "bytes_per_step": 2455.79,
    "raw_rows_per_second": 92069.12,
    "raw_messages_per_second": 110901.98,
    "tailer_rows_per_second": 27517.72,
}

# Events of a step, its command and its execution's own row.
ROWS_PER_STEP = 8
EVENTS_PER_STEP = 6

# How much of a limit is planned for: the rest is for bursts, vacuum and a node that is away.
SHARE = 0.5

# Pull requests that wait at one JetStream consumer, by its default.
PULLS_PER_CONSUMER = 512
# Seconds between two calls of a worker that holds something, by default (45 s lease, 9 renewals).
HEARTBEAT_SECONDS = 5
# Announcements are kept for an hour; their size with headers.
ANNOUNCEMENT_BYTES = 420
ANNOUNCEMENT_SECONDS = 3600
# Machine numbers that servers lease to mint ids.
SERVERS_MAX = 1024
# Connections of one server to each database, by default.
CONNECTIONS_PER_SERVER = 10


def measured(path):
    """The best line of each kind in what `make bench` printed."""
    found = dict.fromkeys(MEASURED, 0.0)
    with open(path, encoding="utf-8") as lines:
        for text in lines:
            line = json.loads(text)
            name, store = line.get("bench", ""), line.get("store", "")
            if store != "postgres":
                continue
            if name.startswith("steps_") and line["steps_per_second"] > found["steps_per_second"]:
                for key in (
                    "steps_per_second",
                    "cpu_ms_per_1000_steps",
                    "bytes_per_step",
                    "raw_rows_per_second",
                    "raw_messages_per_second",
                ):
                    found[key] = line[key]
            if name == "tailer":
                found["tailer_rows_per_second"] = line["rows_per_second"]
    return found


def plan(figures, nodes, slots, step_seconds, cores):
    """What so many nodes ask for, and what answers it."""
    busy = nodes * slots
    steps = busy / step_seconds
    rows_of_database = figures["raw_rows_per_second"] * SHARE
    cpu_seconds = figures["cpu_ms_per_1000_steps"] / 1e6
    tailer = figures["tailer_rows_per_second"]
    # Each database has one tailer, if events are published at all.
    by_tailer = math.ceil(steps * EVENTS_PER_STEP / (tailer * SHARE)) if tailer else 1
    shards = max(1, math.ceil(steps * ROWS_PER_STEP / rows_of_database), by_tailer)
    servers = max(2, math.ceil(steps * cpu_seconds / (cores * SHARE)))
    return {
        "nodes": nodes,
        "steps running": busy,
        "steps per second": steps,
        "rows per second": steps * ROWS_PER_STEP,
        "databases": shards,
        "servers": servers,
        "server cores": steps * cpu_seconds,
        "connections per database": servers * CONNECTIONS_PER_SERVER,
        "announcements per second": steps,
        "of what JetStream takes": steps / figures["raw_messages_per_second"],
        "stream of commands, GiB": steps * ANNOUNCEMENT_BYTES * ANNOUNCEMENT_SECONDS / 2**30,
        "pools (consumers)": max(1, math.ceil(nodes / PULLS_PER_CONSUMER)),
        "heartbeats per second": nodes / HEARTBEAT_SECONDS,
        "of what tailers publish": steps * EVENTS_PER_STEP / (tailer * shards) if tailer else 0.0,
        "GiB per day": steps * figures["bytes_per_step"] * 86400 / 2**30,
    }


def breaks(figures, cores):
    """Steps per second at which each part is used up, one of each, smallest first."""
    limits = {
        "a server's cores": cores / (figures["cpu_ms_per_1000_steps"] / 1e6),
        "rows one database inserts": figures["raw_rows_per_second"] / ROWS_PER_STEP,
        "announcements one stream takes": figures["raw_messages_per_second"],
    }
    if figures["tailer_rows_per_second"]:
        limits["events one tailer publishes"] = figures["tailer_rows_per_second"] / EVENTS_PER_STEP
    return sorted(limits.items(), key=lambda item: item[1])


def shown(value):
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.2f}" if value < 10 else f"{value:,.0f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bench", help="lines of `make bench`")
    parser.add_argument("--nodes", type=int, action="append", help="nodes that run steps; may be repeated")
    parser.add_argument("--slots", type=int, default=16, help="steps at a time on each (16)")
    parser.add_argument("--step-seconds", type=float, default=2.0, help="how long a step takes (2)")
    parser.add_argument("--cores", type=int, default=8, help="cores of a server (8)")
    arguments = parser.parse_args()
    wrong = [n for n in (arguments.slots, arguments.step_seconds, arguments.cores) if n <= 0]
    if wrong or any(nodes <= 0 for nodes in arguments.nodes or []):
        parser.error("nodes, slots, seconds and cores are more than 0")
    figures = measured(arguments.bench) if arguments.bench else MEASURED
    missing = [name for name, value in figures.items() if not value and name != "tailer_rows_per_second"]
    if missing:
        sys.exit(f"not measured: {', '.join(missing)}; give the lines of `make bench` with --bench")
    plans = [
        plan(figures, nodes, arguments.slots, arguments.step_seconds, arguments.cores)
        for nodes in arguments.nodes or [10, 100, 1000]
    ]
    for name in plans[0]:
        print(f"{name:<26}" + "".join(f"{shown(each[name]):>16}" for each in plans))
    print("\nwhat one of each takes, in steps per second:")
    for name, limit in breaks(figures, arguments.cores):
        print(f"  {name:<32}{shown(limit):>12}")
    for each in plans:
        if each["servers"] > SERVERS_MAX:
            print(f"\n{each['nodes']} nodes need more servers than there are machine numbers ({SERVERS_MAX})")


if __name__ == "__main__":
    main()
