"""Cases about operation: the CLI, cancellation, processes that are killed, a deleted stream, tokens."""

import json
import re
import signal
import time

import nats
from stage import CaseError, Stage, wait_for
from stub import BEARER

STREAM = "noetl_commands"
CHAIN = 6
OPERATIONS = []


def operation(name):
    def record(function):
        OPERATIONS.append((name, function))
        return function
    return record


def check(condition, text):
    if not condition:
        raise CaseError(text)


def write_playbook(stage, name, steps, workload="{}"):
    """Writes a playbook and registers it with the CLI."""
    file = stage.directory / f"{name}.yaml"
    file.write_text(
        f"apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {{name: {name}, path: operations/{name}}}\n"
        f"workload: {workload}\nworkflow:\n{steps}"
    )
    stage.register(file)
    return f"operations/{name}"


def slow(stage, seconds=4):
    steps = f"  - {{step: start, tool: {{kind: shell, command: 'sleep {seconds}; printf done'}}}}\n"
    return write_playbook(stage, f"slow-{seconds}", steps)


def chain(stage):
    steps = ""
    for index in range(CHAIN):
        following = f", next: {{arcs: [{{step: s{index + 1}}}]}}" if index + 1 < CHAIN else ""
        steps += f"  - {{step: s{index}, tool: {{kind: shell, command: 'sleep 0.2'}}{following}}}\n"
    return write_playbook(stage, "chain", steps)


def started(stage, execution):
    wait_for("command.started", lambda: stage.count(execution, "command.started"))


def some_steps(stage, executions):
    """Waits until the executions have run some of their steps."""
    wait_for("steps", lambda: sum(stage.count(one, "call.done") for one in executions) >= 2)


def all_complete(stage, executions):
    """Waits until each execution completed, and checks that each step has exactly one result."""
    for execution in executions:
        status, _, error = stage.outcome(execution)
        check(status == "COMPLETED", f"{execution}: {status}, {error}")
        done = stage.count(execution, "step.exit")
        check(done == CHAIN, f"{execution}: {done} step exits, expected {CHAIN}")


@operation("CLI: `register`, `catalog list`, `catalog get`, `run`, `status`, `execute rerun`, `query`, `catalog load`, `cleanup`")
def commands(stage):
    with stage.published_worker():
        path = write_playbook(stage, "verbs", "  - {step: start, tool: {kind: noop, result: {n: 1}}}\n")
        check(path in stage.cli("catalog", "list", "Playbook", "--json"), "catalog list lacks the playbook")
        check("kind: Playbook" in stage.cli("catalog", "get", path), "catalog get lacks the document")
        execution = stage.execute(path)
        check(stage.outcome(execution)[0] == "COMPLETED", "the execution did not complete")
        check(stage.status(execution)["completed"] is True, "status lacks `completed`")
        check("COMPLETED" in stage.cli("status", execution), "status doesn't print COMPLETED")
        again = str(json.loads(stage.cli("execute", "rerun", execution, "--json"))["execution_id"])
        check(stage.outcome(again)[0] == "COMPLETED", "the rerun did not complete")
        shown = stage.cli("query", "select 5 as five", "--format", "json")
        check("5" in shown, f"query printed {shown!r}")
        loaded = json.loads(stage.cli("catalog", "load", stage.directory / "verbs.yaml", "--json"))
        check(loaded["registered"] == 1, f"catalog load printed {loaded}")
        cleaned = json.loads(stage.cli("cleanup", "--dry-run", "--json"))
        check("cancelled_count" in cleaned, f"cleanup printed {cleaned}")


@operation("CLI: `register credential`, `get credential`")
def credential(stage):
    file = stage.directory / "credential.json"
    file.write_text(json.dumps({"name": "operations-bearer", "type": "bearer", "data": {"token": BEARER}}))
    stage.cli("register", "credential", "-f", file)
    shown = json.loads(stage.cli("get", "credential", "operations-bearer"))
    check(shown["data"]["token"] == BEARER, "the credential's data differs")


@operation("CLI: `cancel`, while a step is running")
def cancel(stage):
    with stage.published_worker():
        execution = stage.execute(slow(stage, 6))
        started(stage, execution)
        stage.cli("cancel", execution, "--reason", "test")
        check(stage.outcome(execution)[0] == "CANCELLED", "the execution was not cancelled")
        # The worker finishes the tool, and takes the next command.
        following = stage.execute(slow(stage, 1))
        check(stage.outcome(following)[0] == "COMPLETED", "the next execution did not complete")
        time.sleep(6)
        check(stage.outcome(execution)[0] == "CANCELLED", "a late completion changed the outcome")
        check(stage.count(execution, "playbook.completed") == 0, "a cancelled execution completed")


@operation("Kill the worker (SIGKILL) in the middle of a step; it restarts under its name")
def worker_killed(stage):
    with stage.published_worker() as worker:
        execution = stage.execute(slow(stage, 4))
        started(stage, execution)
        worker.send(signal.SIGKILL)
        status, result, error = stage.outcome(execution)
        check(status == "COMPLETED" and result["stdout"].strip() == "done", f"{status} {result} {error}")
        check(stage.count(execution, "command.issued") == 2, "the command was not issued twice")
        check(worker.restarts == 1, f"{worker.restarts} restarts")


@operation("Stop the worker (SIGTERM) in the middle of a step; it restarts under its name")
def worker_stopped(stage):
    with stage.published_worker() as worker:
        execution = stage.execute(slow(stage, 4))
        started(stage, execution)
        worker.send(signal.SIGTERM)
        check(stage.outcome(execution)[0] == "COMPLETED", "the execution did not complete")


@operation("Kill the worker (SIGKILL); another one takes its command over")
def worker_replaced(stage):
    worker = stage.published_worker("w-lost").start()
    try:
        execution = stage.execute(slow(stage, 4))
        started(stage, execution)
    finally:
        worker.end(signal.SIGKILL)
    with stage.published_worker("w-next"):
        check(stage.outcome(execution)[0] == "COMPLETED", "the execution did not complete")


@operation("Kill the server (SIGKILL) and restart it, with steps in flight")
def server_killed(stage):
    with stage.published_worker():
        path = chain(stage)
        executions = [stage.execute(path) for _ in range(4)]
        some_steps(stage, executions)
        stage.server.end(signal.SIGKILL)
        time.sleep(3)
        stage.start()
        all_complete(stage, executions)


@operation("Stop the server (SIGTERM) and restart it, with steps in flight")
def server_stopped(stage):
    with stage.published_worker():
        path = chain(stage)
        executions = [stage.execute(path) for _ in range(4)]
        some_steps(stage, executions)
        stage.server.end(signal.SIGTERM)
        time.sleep(1)
        stage.start()
        all_complete(stage, executions)


@operation("Delete the stream `noetl_commands` twice, with steps in flight")
def stream_deleted(stage):
    with stage.published_worker():
        path = chain(stage)
        executions = [stage.execute(path) for _ in range(4)]
        for _ in range(2):
            some_steps(stage, executions)
            check(nats.delete_stream(stage.nats, STREAM).get("success"), "the stream was not deleted")
            time.sleep(1)
        all_complete(stage, executions)


@operation("Kill NATS (SIGKILL) and restart it, with steps in flight")
def nats_killed(stage):
    with stage.published_worker():
        path = chain(stage)
        executions = [stage.execute(path) for _ in range(4)]
        some_steps(stage, executions)
        stage.kill_nats()
        executions.append(stage.execute(path))
        stage.start_nats()
        all_complete(stage, executions)


@operation("Two workers, each with its own `WORKER_METRICS_BIND`")
def two_workers(stage):
    settings = {"WORKER_MAX_CONCURRENT": "1"}
    with stage.published_worker("w1", **settings), stage.published_worker("w2", **settings):
        path = slow(stage, 2)
        executions = [stage.execute(path) for _ in range(4)]
        for execution in executions:
            check(stage.outcome(execution)[0] == "COMPLETED", f"{execution} did not complete")
        text = json.dumps([stage.events(execution) for execution in executions])
        check('"w1"' in text and '"w2"' in text, "one of the workers claimed nothing")


@operation("A worker of another pool (`execution_pool`)")
def pool(stage):
    settings = {"NATS_CONSUMER": "worker-pool-gpu", "NATS_FILTER_SUBJECT": "noetl.commands.gpu.>"}
    path = write_playbook(stage, "pooled", "  - {step: start, tool: {kind: noop, result: {n: 1}}}\n")
    with stage.published_worker("gpu-1", **settings):
        body = {"path": path, "execution_pool": "gpu"}
        execution = stage.request("POST", "/api/execute", body)[1]["execution_id"]
        check(stage.outcome(execution)[0] == "COMPLETED", "the execution did not complete")


@operation("Sealed credentials (`NOETL_SEALED_CREDENTIALS`)")
def sealed(stage):
    credential(stage)
    steps = "  - {step: start, tool: {kind: http, url: '{{ workload.base }}/bearer', auth: operations-bearer}}\n"
    path = write_playbook(stage, "sealed", steps, "{base: ''}")
    with stage.published_worker("w-sealed", NOETL_SEALED_CREDENTIALS="true"):
        status, result, error = stage.outcome(stage.execute(path, {"base": stage.options.stub}))
        check(status == "COMPLETED" and result["data"]["welcome"], f"{status} {result} {error}")


@operation("Subscription mode (`WORKER_MODE=subscription`) with a NATS source")
def subscription(stage):
    nats.create_stream(stage.nats, "orders", ["orders.>"])
    consumer = {"stream_name": "orders", "config": {"durable_name": "noetl", "ack_policy": "explicit"}}
    nats.request(stage.nats, "$JS.API.CONSUMER.DURABLE.CREATE.orders.noetl", json.dumps(consumer).encode())
    path = write_playbook(stage, "ordered", "  - {step: start, tool: {kind: noop, result: {order: '{{ workload.order }}'}}}\n", "{order: 0}")
    file = stage.directory / "subscription.yaml"
    file.write_text(
        "apiVersion: noetl.io/v2\nkind: Subscription\nmetadata: {name: orders, path: subscriptions/orders}\n"
        f"spec:\n  mode: pull\n  source: nats\n  url: {stage.nats}\n  stream: orders\n  consumer: noetl\n"
        f"  dispatch: {{playbook: {path}, payload_from: message.json}}\n"
    )
    content = file.read_text()
    status, body = stage.request("POST", "/api/catalog/register", {"content": content, "resource_type": "Subscription"})
    check(status == 200, f"register: {status} {body}")
    settings = {"WORKER_MODE": "subscription", "NOETL_SUBSCRIPTION_PATH": "subscriptions/orders"}
    with stage.published_worker("listener", **settings), stage.published_worker("w1"):
        nats.publish(stage.nats, "orders.new", {"order": 42})
        def dispatched():
            _, listed = stage.get("/api/executions")
            rows = listed if isinstance(listed, list) else listed.get("executions", [])
            return [row["execution_id"] for row in rows if row["path"] == path]
        executions = wait_for("the dispatched execution", dispatched)
        status, result, error = stage.outcome(executions[0])
        check(status == "COMPLETED" and result == {"order": 42}, f"{status} {result} {error}")


@operation("Token mode, with a token of role `worker` in `NOETL_INTERNAL_API_TOKEN`")
def tokens(stage):
    database = f"sqlite://{stage.directory / 'tokens.db'}"
    other = Stage(stage.options, stage.directory, "tokens", database, {"NOETL_AUTH": "token"})
    try:
        other.start_nats()
        other.start()
        other.token = wait_for("admin token", lambda: admin_token(other.server.logged()))
        worker_token = other.own_cli("token", "create", "--name", "w1", "--role", "worker").split()[0]
        credential(other)
        steps = "  - {step: start, tool: {kind: http, url: '{{ workload.base }}/bearer', auth: operations-bearer}}\n"
        path = write_playbook(other, "tokens", steps, "{base: ''}")
        with other.published_worker("w1", NOETL_INTERNAL_API_TOKEN=worker_token):
            status, result, error = other.outcome(other.execute(path, {"base": stage.options.stub}))
            check(status == "COMPLETED" and result["data"]["welcome"], f"{status} {result} {error}")
        status, _ = Stage.request(anonymous(other), "GET", "/api/executions")
        check(status == 401, f"a caller without a token got {status}")
    finally:
        other.remove()


def anonymous(stage):
    """Returns a caller of the same server without a token."""
    class Caller:
        base, token = stage.base, None
    return Caller()


def admin_token(log):
    found = re.search(r"\bnoetl_[0-9a-f]+_\S+", log)
    return found.group(0) if found else None
