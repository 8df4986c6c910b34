"""DBOS Transact for Python, in one process, on SQLite and on Postgres."""

import harness

VERSION = "3.3.0"


def measure(place, postgres, plan):
    python = place.python("dbos", f"dbos=={VERSION}", "psycopg[binary]")
    work = harness.HERE / "dbos/work.py"
    stores = {
        "sqlite": (
            lambda: f"sqlite:///{place.fresh('dbos') / 'dbos.sqlite'}",
            "SQLite as DBOS opens it: rollback journal, synchronous=full",
        ),
        "postgres": (
            # It names its driver by itself.
            lambda: postgres.database().replace("postgres://", "postgresql://"),
            "Postgres as shipped: synchronous_commit=on, fsync=on",
        ),
    }
    for store, (url, durability) in stores.items():
        for bench, concurrency in plan:
            command = [python, work, bench, concurrency, place.seconds, url()]
            fields = {"version": VERSION, "store": store, "durability": durability}
            harness.measure("dbos", command, bench=bench, concurrency=concurrency,
                            seconds=place.seconds, **fields)
