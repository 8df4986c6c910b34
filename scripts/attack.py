#!/usr/bin/env python3
"""Attacks a noetl program as a hostile author, caller, and step, and prints which attacks it withstood.

usage: scripts/attack.py PROGRAM [--store sqlite] [--store postgres] [--only NAME]

For each store the script starts `PROGRAM dev` in a temporary directory, with a token and with the isolation level that the
machine allows, stores a credential with a canary in it, and runs every attack. An attack fails if it obtains the canary,
a file of the server, a process that outlives its step, or the service of other callers. Exits with 1 if any attack
succeeds. Sends requests to 127.0.0.1 only.
"""

import argparse
import base64
import contextlib
import hashlib
import hmac
import json
import os
import pathlib
import re
import secrets
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
CANARY = "canary-" + secrets.token_hex(12)
ALIAS = "victim"
HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {{name: {name}, path: attack/{name}}}\n"

ATTACKS = []


def attack(function):
    ATTACKS.append(function)
    return function


class Withstood(Exception):
    """An attack that cannot run on this store or machine, with the reason."""


class Server:
    """A `noetl dev` on a store of its own, and a client with its admin token."""

    def __init__(self, program, store, directory):
        self.program, self.store, self.directory = program, store, directory
        self.data = directory / "data"
        self.process, self.base, self.header = None, None, None
        self.database = None
        if store == "postgres":
            url = run(ROOT / "scripts/services/postgres.sh", "start", directory / "postgres").strip()
            self.database = url

    def start(self):
        environment = {**os.environ, "XDG_RUNTIME_DIR": str(self.directory), "HOME": str(self.directory)}
        for name in [name for name in environment if name.startswith("NOETL_")]:
            del environment[name]
        command = [self.program, "dev", "--port", "0", "--data", str(self.data)]
        if self.database:
            command += ["--database-url", self.database]
        self.environment = environment
        self.log = open(self.directory / "server.log", "ab")
        self.process = subprocess.Popen(command, env=environment, stdout=self.log, stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            self.log.write(line.encode())
            found = re.search(r"noetl listens on (http://\S+)", line)
            if found:
                self.base = found.group(1)
                break
        else:
            sys.exit(f"the server ended before it listened; see {self.directory / 'server.log'}")
        # The rest goes to the log, so that the pipe never fills.
        self.drain = subprocess.Popen(["cat"], stdin=self.process.stderr, stdout=self.log)
        # A program that knows no such command asks for no token.
        shown = self.noetl("token", "header", "--server-url", self.base, check=False)
        pair = shown.stdout.strip().split(":", 1)
        self.header = {pair[0]: pair[1].strip()} if shown.returncode == 0 else {}

    def stored_at(self):
        """Returns the options that name the database."""
        return ["--database-url", self.database] if self.database else ["--data", str(self.data)]

    def stop(self):
        if self.process:
            self.process.terminate()
            self.process.wait()
            self.drain.wait()
            self.process = None

    def remove(self):
        self.stop()
        if self.database:
            run(ROOT / "scripts/services/postgres.sh", "remove", self.directory / "postgres")

    def noetl(self, *arguments, check=True):
        # Verbs that open the database read the key from the environment; `dev` has it in a file.
        key = (self.data / "encryption.key").read_text().strip()
        environment = {**self.environment, "NOETL_ENCRYPTION_KEY": key}
        result = subprocess.run([self.program, *arguments], env=environment, capture_output=True, text=True)
        if check and result.returncode != 0:
            sys.exit(f"noetl {' '.join(arguments)}: {result.stderr}")
        return result.stdout if check else result

    def call(self, path, body=None, header=None, method=None):
        """Returns status and body; an error status raises nothing."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"content-type": "application/json", **(self.header if header is None else header)}
        request = urllib.request.Request(self.base + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def register(self, text):
        status, body = self.call("/api/catalog/register", {"content": base64.b64encode(text.encode()).decode()})
        if status != 200:
            sys.exit(f"register: {status} {body}\n{text}")

    def run(self, name, text, payload=None):
        """Registers and runs a playbook. Returns its status and everything that the server shows of it."""
        self.register(HEAD.format(name=name) + text)
        status, body = self.call("/api/execute", {"path": f"attack/{name}", "payload": payload or {}})
        if status != 200:
            return "REFUSED", body
        execution = json.loads(body)["execution_id"]
        for _ in range(600):
            _, shown = self.call(f"/api/executions/{execution}/status")
            state = json.loads(shown)["status"]
            if state in ("COMPLETED", "FAILED", "CANCELLED"):
                break
            time.sleep(0.1)
        _, detail = self.call(f"/api/executions/{execution}")
        _, logs = self.call(f"/api/executions/{execution}/logs")
        return state, detail + logs


def run(*command):
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True).stdout


def step(tool):
    return "workflow:\n  - step: start\n    tool:\n" + "".join(f"      {line}\n" for line in tool.splitlines())


# Forging: text of a caller becomes a placeholder on its way to a tool.

FORGERIES = {
    "as it is": ("«secret:{a}.token»", "{{{{ workload.x }}}}"),
    "lower": ("«SECRET:{a}.token»", "{{{{ workload.x | lower }}}}"),
    "trim": ("  «secret:{a}.token» ", "{{{{ workload.x | trim }}}}"),
    "replace": ("«sec_ret:{a}.token»", "{{{{ workload.x | replace('_', '') }}}}"),
    "join": (["«secret:{a}", "token»"], "{{{{ workload.x | join('.') }}}}"),
    "concatenation": ("secret:{a}.token", "{{{{ '«' ~ workload.x ~ '»' }}}}"),
    "b64decode": ("", "{{{{ workload.x | b64decode }}}}"),
    "urldecode": ("%C2%ABsecret%3A{a}.token%C2%BB", "{{{{ workload.x | urldecode }}}}"),
    "fromjson": ('"\\\\u00absecret:{a}.token\\\\u00bb"', "{{{{ workload.x | fromjson }}}}"),
}


@attack
def forging(server):
    """Text of a caller becomes the placeholder of a credential that the playbook does not name."""
    for name, (payload, template) in FORGERIES.items():
        payload = json.loads(json.dumps(payload).replace("{a}", ALIAS).replace("\\\\\\\\", "\\\\"))
        if name == "b64decode":
            payload = base64.b64encode(f"«secret:{ALIAS}.token»".encode()).decode()
        text = step(
            "kind: python\nargs: {x: \"" + template.format() + "\"}\n"
            "code: |\n  import base64\n  result = {'seen': base64.b16encode(str(x).encode()).decode()}\n"
        )
        state, shown = server.run("forge", text, {"x": payload})
        if CANARY in shown or CANARY.encode().hex().upper() in shown:
            return f"{name}: the step received the credential"
        if state != "COMPLETED":
            return f"{name}: the probe itself did not run ({state}): {shown[-300:]}"
    return None


# Files: tools that open a path reach the server's own files.


def own_files(server):
    files = [path for path in server.data.rglob("*") if path.is_file()]
    files += list(pathlib.Path(server.directory).glob("noetl/*.token"))
    return files


@attack
def file_reads(server):
    """A Python file, a shell command, or an SQL tool reads the server's keys, tokens, or database."""
    targets = own_files(server)
    if not targets:
        return "no file of the server was found; the attack would prove nothing"
    link = server.directory / "link"
    for target in targets:
        with contextlib.suppress(FileNotFoundError):
            link.unlink()
        link.symlink_to(target)
        try:
            content = target.read_bytes()
        except OSError:
            continue
        marker = base64.b64encode(content[:4096]).decode()[:80]
        for path in (str(target), str(link), f"/proc/self/root{target}", f"{target.parent}/./{target.name}"):
            code = f"import base64\nresult = base64.b64encode(open({path!r}, 'rb').read(4096)).decode()\n"
            indented = "".join(f"  {line}\n" for line in code.splitlines())
            _, shown = server.run("read", step(f"kind: python\ncode: |\n{indented}"))
            if marker and marker in shown:
                return f"python read {path}"
            source = f"kind: python\nscript: {{source: {{type: file}}, uri: {json.dumps(path)}}}\n"
            _, shown = server.run("source", step(source))
            # A file that is not Python fails with a message that quotes it.
            text = content[:200].decode("utf-8", "ignore").strip().splitlines()
            if any(len(line) > 15 and line in shown for line in text):
                return f"python executed {path} as its script"
            shell = f"kind: shell\ncommand: {json.dumps('base64 -w0 ' + path + ' | head -c 80')}\n"
            _, shown = server.run("cat", step(shell))
            if marker and marker in shown:
                return f"shell read {path}"
    return None


@attack
def database_access(server):
    """The sqlite tool opens, attaches, or copies the server's own database."""
    database = server.data / "noetl.db"
    if not database.exists():
        raise Withstood("the server keeps no SQLite file on this store")
    stolen = server.directory / "stolen.db"
    attempts = {
        "open": (str(database), "select count(*) as n from token"),
        "open by URI": (f"file:{database}?mode=ro", "select count(*) as n from token"),
        "attach": (":memory:", f"attach database '{database}' as own; select count(*) as n from own.token"),
        "vacuum into": (":memory:", f"attach database '{database}' as own; vacuum own into '{stolen}'"),
    }
    for name, (path, sql) in attempts.items():
        tool = f"kind: sqlite\ndatabase: {json.dumps(path)}\ncommand: {json.dumps(sql)}\n"
        state, shown = server.run("sql", step(tool))
        if state == "COMPLETED" or stolen.exists():
            return f"{name}: {shown[-300:]}"
    return None


@attack
def leftovers(server):
    """A process of a step outlives the step: setsid, double fork, nohup."""
    ways = {
        "setsid": "setsid sleep {n} >/dev/null 2>&1 &",
        "double fork": "(setsid sh -c 'sleep {n} &' >/dev/null 2>&1 &)",
        "nohup": "nohup sleep {n} >/dev/null 2>&1 &",
    }
    for number, (name, command) in enumerate(ways.items()):
        seconds = str(4000000 + os.getpid() % 100000 * 10 + number)
        server.run("stay", step(f"kind: shell\ncommand: {json.dumps(command.format(n=seconds))}\n"))
        if subprocess.run(["pgrep", "-f", f"sleep {seconds}"], capture_output=True).returncode == 0:
            subprocess.run(["pkill", "-9", "-f", f"sleep {seconds}"])
            return f"{name}: the process is still there"
    return None


@attack
def environment(server):
    """A step reads secrets from the environment of the processes around it."""
    code = (
        "import glob\nfound = []\n"
        "for name in glob.glob('/proc/[0-9]*/environ'):\n"
        "  try:\n    found.append(open(name, 'rb').read().decode('utf-8', 'ignore'))\n"
        "  except OSError:\n    pass\n"
        "result = [line for text in found for line in text.split('\\0') if 'NOETL_' in line]\n"
    )
    indented = "".join(f"  {line}\n" for line in code.splitlines())
    _, shown = server.run("environ", step(f"kind: python\ncode: |\n{indented}"))
    names = re.findall(r"NOETL_(?:TOKEN|INTERNAL_API_TOKEN|ENCRYPTION_KEY)=[^\"\\]+", shown)
    return f"a step read {names[0]}" if names else None


@attack
def slow_bodies(server):
    """1,100 anonymous connections with slow bodies take the service from everyone else."""
    address = urllib.parse.urlparse(server.base)
    sockets = []
    try:
        for _ in range(1100):
            connection = socket.create_connection((address.hostname, address.port), timeout=5)
            head = f"POST /api/execute HTTP/1.1\r\nhost: {address.netloc}\r\ncontent-type: application/json\r\n"
            with contextlib.suppress(OSError):
                connection.sendall((head + "content-length: 100000\r\n\r\n{").encode())
            sockets.append(connection)
        for path, header in (("/health", {}), ("/api/executions", None), ("/api/whoami", None)):
            for _ in range(5):
                status, body = server.call(path, header=header)
                if status != 200:
                    return f"{path} answered {status}: {body[:120]}"
    finally:
        for connection in sockets:
            connection.close()
    return None


@attack
def stream_exhaustion(server):
    """One tenant opens streams without end, and another one gets none."""
    other = server.noetl("token", "create", "--name", "other", "--role", "viewer", "--server-url", server.base).split()[0]
    address = urllib.parse.urlparse(server.base)
    sockets, refused = [], 0
    header = "".join(f"{name}: {value}\r\n" for name, value in server.header.items())
    try:
        for _ in range(1500):
            connection = socket.create_connection((address.hostname, address.port), timeout=5)
            request = f"GET /api/executions/stream HTTP/1.1\r\nhost: {address.netloc}\r\naccept: text/event-stream\r\n{header}\r\n"
            connection.sendall(request.encode())
            first = connection.recv(64).decode("utf-8", "ignore")
            sockets.append(connection)
            if " 429 " in first:
                refused += 1
                break
            if " 200 " not in first:
                return f"a stream answered {first.splitlines()[0] if first else 'nothing'}"
        status, body = server.call("/api/executions", header={"authorization": f"Bearer {other}"})
        if status != 200:
            return f"another caller was refused: {status} {body[:120]}"
    finally:
        for connection in sockets:
            connection.close()
    return None if refused else "1,500 streams were opened and none was refused"


@attack
def webhook_replays(server):
    """A captured webhook starts its execution again."""
    server.register(HEAD.format(name="hook") + "workflow:\n  - step: start\n    tool: {kind: noop}\n")
    secret = secrets.token_hex(16)
    server.call("/api/credentials", {"name": "hook-secret", "type": "generic", "data": {"secret": secret}})
    document = (
        "apiVersion: noetl.io/v1\nkind: Subscription\nmetadata: {name: hook, path: attack/subscription}\n"
        "spec:\n  source: webhook\n  mode: push\n  ingress:\n    gateway_path: /ingress/attack\n"
        "    verify: {type: hmac_sha256, header: x-signature, secret: hook-secret}\n"
        "  dispatch: {playbook: attack/hook}\n"
    )
    status, body = server.call("/api/catalog/register", {"content": base64.b64encode(document.encode()).decode()})
    if status != 200:
        return f"the probe's subscription was not registered: {body[:300]}"
    message = b'{"order": 1}'
    signature = hmac.new(secret.encode(), message, hashlib.sha256).hexdigest()
    seen = []
    for _ in range(3):
        request = urllib.request.Request(
            server.base + "/ingress/attack", message, {"x-signature": signature, "content-type": "application/json"}
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                seen.append(json.loads(response.read())["execution_id"])
        except urllib.error.HTTPError as error:
            return f"the probe's message was refused: {error.code} {error.read().decode()[:200]}"
    return None if len(set(seen)) == 1 else f"one captured message started {len(set(seen))} executions"


@attack
def swapped_rows(server):
    """Someone who writes the database swaps two sealed credentials, so that one alias opens the other's secret."""
    for name in ("swap-a", "swap-b"):
        server.call("/api/credentials", {"name": name, "type": "generic", "data": {"token": f"{name}-{CANARY}"}})
    server.stop()
    server.noetl("credential", "reseal", *server.stored_at())
    sound = server.noetl("audit", "verify", *server.stored_at(), check=False)
    if sound.returncode != 0:
        return f"the probe itself failed: audit verify before the swap: {sound.stdout}{sound.stderr}"
    swap = (
        "update {0}credential as c set data_encrypted = (select o.data_encrypted from {0}credential o "
        "where o.name like 'swap-%' and o.name <> c.name) where c.name like 'swap-%'"
    )
    if server.store == "sqlite":
        with contextlib.closing(sqlite3.connect(server.data / "noetl.db")) as rows:
            values = dict(rows.execute("select name, data_encrypted from credential where name like 'swap-%'"))
            for one, two in (("swap-a", "swap-b"), ("swap-b", "swap-a")):
                rows.execute("update credential set data_encrypted = ? where name = ?", (values[two], one))
            rows.commit()
    else:
        run("psql", server.database, "-v", "ON_ERROR_STOP=1", "-c", swap.format("noetl."))
    verified = server.noetl("audit", "verify", *server.stored_at(), check=False)
    server.start()
    status, body = server.call("/api/credentials/swap-a?include_data=true")
    if f"swap-b-{CANARY}" in body:
        return "swap-a opened with the secret of swap-b"
    if verified.returncode == 0:
        return f"audit verify found nothing: {verified.stdout[-200:]}"
    return None


def attacked(server, only):
    """Runs every attack. Returns the number that succeeded."""
    succeeded = 0
    for function in ATTACKS:
        if only and function.__name__ not in only:
            continue
        try:
            obtained = function(server)
            outcome = "held" if obtained is None else "BROKEN"
            note = f"  {obtained}" if obtained else ""
        except Withstood as reason:
            outcome, note = "not run", f"  {reason}"
        succeeded += outcome == "BROKEN"
        print(f"  {outcome:8}{function.__name__.replace('_', ' '):20} {function.__doc__}{note}", flush=True)
    return succeeded


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("program")
    arguments.add_argument("--store", action="append", choices=["sqlite", "postgres"], help="default: both")
    arguments.add_argument("--only", action="append", help="name of an attack; repeatable")
    given = arguments.parse_args()
    succeeded, ran = 0, 0
    for store in given.store or ["sqlite", "postgres"]:
        directory = pathlib.Path(tempfile.mkdtemp(prefix="noetl-attack-"))
        # The user that Postgres runs as has to enter it.
        directory.chmod(0o755)
        server = Server(str(pathlib.Path(given.program).resolve()), store, directory)
        try:
            server.start()
            doctor = server.noetl("doctor", "--server-url", server.base, check=False)
            level = [line for line in (doctor.stdout + doctor.stderr).splitlines() if "isolated" in line]
            print(f"{store}: {level[0].strip() if level else 'isolation level not shown'}", flush=True)
            server.call("/api/credentials", {"name": ALIAS, "type": "generic", "data": {"token": CANARY}})
            succeeded += attacked(server, given.only)
            ran += 1
        finally:
            server.remove()
            shutil.rmtree(directory, ignore_errors=True)
    print(f"{'every attack was withstood' if not succeeded else f'{succeeded} attacks succeeded'}, on {ran} stores")
    sys.exit(1 if succeeded else 0)


if __name__ == "__main__":
    main()
