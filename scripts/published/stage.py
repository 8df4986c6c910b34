"""Processes of a run: the server, its workers, and the published CLI, each in a directory of its own."""

import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request

# Longest wait for anything. Only a hang reaches it: recovery of a lost worker takes up to 90 s.
PATIENCE = 180

SERVICES = pathlib.Path(__file__).resolve().parent.parent / "services"
KEY = "cHVibGlzaGVkLXdvcmtlci10ZXN0LWtleS0zMi1iISE="


class CaseError(Exception):
    """A case that failed, with the reason."""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(name, condition, seconds=PATIENCE):
    """Polls a condition and returns its first true value."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.1)
    raise CaseError(f"{name}: no result within {seconds} s")


def clean_environment(home):
    """Returns the environment without settings of NoETL or NATS that the caller's shell may have."""
    prefixes = ("NOETL_", "WORKER_", "NATS_", "POSTGRES_", "RUST_LOG")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(prefixes)}
    return {**kept, "HOME": str(home), "NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost"}


class Program:
    """A process whose output goes to a file."""

    def __init__(self, name, command, environment, directory):
        self.name, self.command, self.environment = name, [str(part) for part in command], environment
        self.directory = directory
        self.log = directory / f"{name}.log"
        self.process = None

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                self.command, env=self.environment, cwd=self.directory,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )
        return self

    def is_running(self):
        return self.process is not None and self.process.poll() is None

    def send(self, number):
        if self.is_running():
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(number)

    def end(self, number=signal.SIGTERM):
        """Sends a signal and waits for the end of the process."""
        self.send(number)
        if self.process is not None:
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def logged(self):
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.end()


class Supervised(Program):
    """A process that is started again whenever it ends, as the guide asks for the published worker."""

    def __init__(self, ready_url, *arguments):
        super().__init__(*arguments)
        self.ready_url = ready_url
        self.wanted, self.restarts, self.thread = False, 0, None

    def start(self):
        self.wanted = True
        super().start()
        self.thread = threading.Thread(target=self._supervise, daemon=True)
        self.thread.start()
        try:
            wait_for("readiness of the worker", self.is_ready, 60)
        except CaseError as error:
            self.end()
            raise CaseError(f"{error}: {self.logged()[-500:]}") from None
        return self

    def is_ready(self):
        with contextlib.suppress(OSError):
            with urllib.request.urlopen(self.ready_url, timeout=5) as response:
                return response.status == 200

    def _supervise(self):
        while self.wanted:
            self.process.wait()
            if self.wanted:
                time.sleep(0.5)
                self.restarts += 1
                Program.start(self)

    def end(self, number=signal.SIGTERM):
        self.wanted = False
        super().end(number)


class Stage:
    """A server with its database and bus, and constructors of everything that connects to it."""

    def __init__(self, options, directory, name, database, settings=None):
        self.options, self.name = options, name
        self.directory = directory / name
        self.directory.mkdir(parents=True)
        self.nats = None
        self.port = free_port()
        self.base = f"http://127.0.0.1:{self.port}"
        self.token = None
        environment = clean_environment(self.directory)
        environment.update(
            NOETL_ENCRYPTION_KEY=KEY, NOETL_PUBLIC_SERVER_URL=self.base, RUST_LOG="info", **(settings or {}),
        )
        command = [options.noetl, "server", "--port", self.port, "--database-url", database]
        self.server = Program("server", command, environment, self.directory)

    def start_nats(self):
        """Starts a NATS server for this stage alone, always on the same port."""
        self.nats = self._services("start").strip()
        if "--nats-url" not in self.server.command:
            self.server.command += ["--nats-url", self.nats]

    def kill_nats(self):
        self._services("signal", "KILL")

    def _services(self, verb, *arguments):
        command = [SERVICES / "nats.sh", verb, self.directory / "nats", *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def remove(self):
        """Ends the server and its NATS server."""
        self.server.end()
        self._services("remove")

    def start(self):
        self.server.start()
        wait_for("server", self._is_healthy, 60)
        return self

    def _is_healthy(self):
        if not self.server.is_running():
            raise CaseError(f"the server ended:\n{self.server.logged()[-2000:]}")
        with contextlib.suppress(OSError):
            return self.get("/api/health")[0] == 200

    def own_worker(self, name="own"):
        """Returns the worker of this repository."""
        command = [self.options.noetl, "worker", "--server", self.base]
        environment = clean_environment(self.directory)
        if self.token:
            environment["NOETL_TOKEN"] = self.token
        return Program(name, command, environment, self.directory)

    def published_worker(self, name="w1", **settings):
        """Returns the published worker, with the settings that the guide names and nothing else."""
        environment = clean_environment(self.directory)
        bind = f"127.0.0.1:{free_port()}"
        environment.update(
            NOETL_SERVER_URL=self.base, NATS_URL=self.nats, WORKER_ID=name, WORKER_METRICS_BIND=bind, **settings,
        )
        # In subscription mode the worker never reports that it is ready.
        route = "healthz" if settings.get("WORKER_MODE") == "subscription" else "readyz"
        return Supervised(f"http://{bind}/{route}", name, [self.options.worker], environment, self.directory)

    def cli(self, *arguments, check=True, token=None):
        """Runs the published CLI against this server and returns its output."""
        environment = clean_environment(self.directory)
        if token or self.token:
            environment["NOETL_SESSION_TOKEN"] = token or self.token
        command = [str(self.options.cli), "--server-url", self.base, *map(str, arguments)]
        result = subprocess.run(
            command, env=environment, cwd=self.directory, capture_output=True, text=True, timeout=PATIENCE,
        )
        if check and result.returncode != 0:
            raise CaseError(f"CLI {arguments[0]}: exit code {result.returncode}: {result.stderr.strip()[-400:]}")
        return result.stdout

    def own_cli(self, *arguments):
        """Runs a command of our program against this server and returns its output."""
        environment = {**clean_environment(self.directory), "NOETL_TOKEN": self.token or ""}
        command = [str(self.options.noetl), *arguments, "--server-url", self.base]
        result = subprocess.run(command, env=environment, cwd=self.directory, capture_output=True, text=True)
        if result.returncode != 0:
            raise CaseError(f"noetl {arguments[0]}: exit code {result.returncode}: {result.stderr.strip()[-400:]}")
        return result.stdout

    def request(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        headers = {"content-type": "application/json"}
        if self.token:
            headers["authorization"] = f"Bearer {self.token}"
        request = urllib.request.Request(self.base + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                return response.status, json.loads(response.read() or b"null")
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode(errors="replace")

    def get(self, path):
        return self.request("GET", path)

    def register(self, path):
        self.cli("register", "playbook", "-f", path)

    def execute(self, path, payload=None):
        """Starts a playbook with the CLI and returns the ID of its execution."""
        arguments = ["run", path, "-r", "distributed", "--json"]
        if payload:
            arguments += ["--payload", json.dumps(payload)]
        return str(json.loads(self.cli(*arguments))["execution_id"])

    def status(self, execution):
        return json.loads(self.cli("status", execution, "--json"))

    def outcome(self, execution, seconds=PATIENCE):
        """Waits for the end of an execution. Returns its status, result, and error."""
        def ended():
            _, status = self.get(f"/api/executions/{execution}/status")
            return status if status["status"] in ("COMPLETED", "FAILED", "CANCELLED") else None
        try:
            status = wait_for(f"execution {execution}", ended, seconds)
        except CaseError as error:
            raise CaseError(f"{error}; {self.why(execution)}") from None
        _, detail = self.get(f"/api/executions/{execution}")
        return status["status"], detail.get("result"), status.get("error")

    def why(self, execution):
        return json.dumps(self.get(f"/api/executions/{execution}/why")[1])[:600]

    def events(self, execution):
        return self.get(f"/api/executions/{execution}")[1]["events"]

    def count(self, execution, kind):
        return sum(event["event_type"] == kind for event in self.events(execution))


def head_of(path):
    """Returns the leading comment of a playbook as one line of text."""
    lines = []
    for line in pathlib.Path(path).read_text().splitlines():
        if not line.startswith("#"):
            break
        lines.append(line[1:].strip())
    return " ".join(lines)
