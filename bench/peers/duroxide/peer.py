"""duroxide: orchestrations in one process on its SQLite provider."""

import harness

SOURCE = harness.HERE / "duroxide"
VERSION = "0.1.32"
DURABILITY = "SQLite as its provider opens it: write-ahead log, synchronous=normal in effect"


def measure(place, _postgres, plan):
    program = place.cargo(SOURCE, "peer-duroxide")
    for bench, concurrency in plan:
        file = place.fresh("duroxide") / "store.db"
        command = [program, bench, concurrency, place.seconds, file]
        harness.measure("duroxide", command, bench=bench, concurrency=concurrency,
                        seconds=place.seconds, version=VERSION, store="sqlite",
                        durability=DURABILITY)
