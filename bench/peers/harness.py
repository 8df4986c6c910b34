"""What the peers share: a place to install to, processes that are surely ended, one line per measurement.

A peer's work program prints `begin` when it starts to count and one JSON object when it stops.
What was counted is steps whose body ran in between, and the times between two bodies of one
execution. Processor time is read here, of all processes a peer started, without its database.
"""

import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")

# One measurement may take this much longer than its window: starting, warming up, answering.
SLACK_SECONDS = 90


class Skipped(Exception):
    """A peer that cannot be measured here; its text says why."""


def say(text):
    print(text, file=sys.stderr, flush=True)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def run(arguments, **options):
    """Runs a command of an installation to its end."""
    done = subprocess.run(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    if done.returncode != 0:
        tail = done.stdout.decode(errors="replace").strip().splitlines()[-3:]
        raise Skipped(f"{Path(arguments[0]).name} failed: {' / '.join(tail)}")
    return done.stdout.decode(errors="replace")


def answers(port, seconds=180):
    """Waits until something listens."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        with socket.socket() as probe:
            probe.settimeout(1)
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise Skipped(f"nothing listens on port {port} after {seconds} s")


class Process:
    """A process in a group of its own, which is ended whole."""

    def __init__(self, arguments, environment=None, directory=None, log=None):
        self.log = open(log, "ab") if log else subprocess.DEVNULL
        self.process = subprocess.Popen(
            [str(argument) for argument in arguments],
            env={**os.environ, **(environment or {})},
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if log is None else self.log,
            stderr=self.log if log else None,
            start_new_session=True,
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        if self.log is not subprocess.DEVNULL:
            self.log.close()

    def cpu_seconds(self):
        """Processor seconds of the group so far, of what lives and of what has ended in it."""
        ticks = 0
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(fields[3]) == self.process.pid:
                ticks += sum(int(field) for field in fields[11:15])
        return ticks / TICKS_PER_SECOND


def measure(peer, work, servers=(), environment=None, **fields):
    """Runs a work program once; prints and returns its line.

    `work` is the command, `servers` the other processes whose processor time counts, `peer` and
    `fields` what the line says of them.
    """
    seconds = int(fields.pop("seconds"))
    with Process(work, environment) as process:
        lines = queue.Queue()

        def read():
            for line in process.process.stdout:
                lines.put(line.decode(errors="replace").strip())
            lines.put(None)

        threading.Thread(target=read, daemon=True).start()
        ends = time.monotonic() + seconds + SLACK_SECONDS
        cpu = None
        everyone = [process, *servers]
        while True:
            try:
                line = lines.get(timeout=max(0.1, ends - time.monotonic()))
            except queue.Empty:
                raise Skipped(f"no answer after {seconds + SLACK_SECONDS} s") from None
            if line is None:
                raise Skipped("its work program ended without an answer")
            if line == "begin":
                cpu = sum(one.cpu_seconds() for one in everyone)
            elif line.startswith("{") and cpu is not None:
                cpu = sum(one.cpu_seconds() for one in everyone) - cpu
                break
    counted = json.loads(line)
    if counted["steps"] == 0:
        raise Skipped("no step ran")
    steps = counted["steps"]
    result = {
        "bench": fields.pop("bench"),
        "system": peer,
        **fields,
        "steps": steps,
        "steps_per_second": round(steps / counted["seconds"], 2),
        "p50_us": counted.get("p50_us"),
        "p99_us": counted.get("p99_us"),
        "p999_us": counted.get("p999_us"),
        "cpu_ms_per_1000_steps": round(cpu * 1e6 / steps, 2),
    }
    print(json.dumps(result, separators=(",", ":")), flush=True)
    return result


class Postgres:
    """A private server on the same disk, with its durability as shipped."""

    SCRIPT = ROOT / "scripts/services/postgres.sh"

    def __init__(self):
        self.directory = f"{os.environ.get('TMPDIR', '/tmp')}/noetl-postgres-peers-{os.getpid()}"
        self.url = None
        self.made = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.url:
            subprocess.run([self.SCRIPT, "remove", self.directory], stdout=subprocess.DEVNULL)

    def database(self):
        """The URL of a new database."""
        if not self.url:
            lines = run([self.SCRIPT, "start", self.directory, "max_wal_size=4GB"]).splitlines()
            self.url = lines[-1].strip()
        self.made += 1
        name = f"peer_{self.made}"
        run(["psql", "-X", "-q", "-c", f"create database {name}", self.url])
        return f"{self.url.rsplit('/', 1)[0]}/{name}"
