"""Prefect: its server on SQLite, flows and tasks in one process."""

import harness

VERSION = "3.8.8"
# What it says it works with reaches further than it does: with 0.162 its server does not start.
FASTAPI = "0.139.2"
DURABILITY = (
    "server on SQLite as Prefect opens it: write-ahead log, synchronous=normal; "
    "states of tasks are sent in the background, results are files"
)


def measure(place, _postgres, plan):
    python = place.python("prefect", f"prefect=={VERSION}", f"fastapi=={FASTAPI}")
    for bench, concurrency in plan:
        home, port = place.fresh("prefect"), harness.free_port()
        environment = {
            "PREFECT_HOME": str(home),
            "PREFECT_API_URL": f"http://127.0.0.1:{port}/api",
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
            "DO_NOT_TRACK": "1",
            "PREFECT_LOGGING_LEVEL": "ERROR",
            "PREFECT_LOGGING_TO_API_ENABLED": "false",
        }
        serve = [python, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", port]
        with harness.Process(serve, environment, log=home / "server.log") as server:
            harness.answers(port)
            command = [python, harness.HERE / "prefect/work.py", bench, concurrency, place.seconds]
            harness.measure("prefect", command, [server], environment, bench=bench,
                            concurrency=concurrency, seconds=place.seconds, version=VERSION,
                            store="sqlite", durability=DURABILITY)
