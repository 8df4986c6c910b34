"""Restate: one server process as its package ships it, and a handler in Rust."""

import json

import harness

SOURCE = harness.HERE / "restate"
VERSION = json.loads((SOURCE / "package.json").read_text())["dependencies"]["@restatedev/restate-server"]
DURABILITY = "its own log on disk, as shipped: RocksDB write-ahead log with fsync, one node"


def measure(place, _postgres, plan):
    directory = place.node("restate", SOURCE, ["package.json"])
    found = list(directory.glob("node_modules/@restatedev/restate-server-*/bin/restate-server"))
    if not found:
        raise harness.Skipped("its package has no server for this machine")
    handler = place.cargo(SOURCE, "peer-restate")
    for bench, concurrency in plan:
        data = place.fresh("restate")
        ingress, admin, node = harness.free_port(), harness.free_port(), harness.free_port()
        environment = {
            "RESTATE_BASE_DIR": str(data),
            "RESTATE_DISABLE_TELEMETRY": "true",
            "RESTATE_LISTEN_MODE": "tcp",
            "RESTATE_BIND_IP": "127.0.0.1",
            "RESTATE_BIND_PORT": str(node),
            "RESTATE_INGRESS__BIND_PORT": str(ingress),
            "RESTATE_ADMIN__BIND_PORT": str(admin),
            "RESTATE_LOG_FILTER": "error",
        }
        with harness.Process([found[0], "--no-logo"], environment, log=data / "server.log") as server:
            harness.answers(ingress)
            harness.answers(admin)
            command = [handler, bench, concurrency, place.seconds,
                       f"http://127.0.0.1:{ingress}", f"http://127.0.0.1:{admin}"]
            harness.measure("restate", command, [server], bench=bench, concurrency=concurrency,
                            seconds=place.seconds, version=VERSION, store="own",
                            durability=DURABILITY)
