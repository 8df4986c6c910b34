"""graphile-worker: a queue of jobs on Postgres, the floor of what a workflow engine there can cost."""

import json

import harness

SOURCE = harness.HERE / "graphile"
VERSION = json.loads((SOURCE / "package.json").read_text())["dependencies"]["graphile-worker"]
DURABILITY = "Postgres as shipped: synchronous_commit=on, fsync=on; a job per step, no history"


def measure(place, postgres, plan):
    directory = place.node("graphile", SOURCE, ["package.json", "work.mjs"])
    for bench, concurrency in plan:
        command = ["node", directory / "work.mjs", bench, concurrency, place.seconds, postgres.database()]
        harness.measure("graphile-worker", command, bench=bench, concurrency=concurrency,
                        seconds=place.seconds, version=VERSION, store="postgres",
                        durability=DURABILITY)
