#!/usr/bin/env python3
"""Runs the cases of the gateway guide through the published gateway, with our server in token mode.

usage: gateway.py --noetl PROGRAM --gateway PROGRAM --postgres URL [--only TEXT] [--directory DIR]

Exits with 1 if a case fails. Sessions are in a database of their own, in the tables of the published login playbooks.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

from stage import CaseError, Program, Stage, clean_environment, free_port, wait_for
from operations import admin_token, check

TABLES = """
create schema auth;
create table auth.users (user_id serial primary key, email varchar(255) not null, display_name varchar(255),
  is_active boolean not null default true);
create table auth.sessions (session_token text primary key, user_id integer not null, expires_at timestamptz not null,
  is_active boolean not null default true);
create table auth.roles (role_id serial primary key, role_name varchar(100) not null);
create table auth.user_roles (user_id integer not null, role_id integer not null, expires_at timestamptz);
insert into auth.users (email, display_name) values ('ada@example.com', 'Ada');
insert into auth.roles (role_name) values ('user');
insert into auth.user_roles (user_id, role_id) values (1, 1);
insert into auth.sessions values ('4be1c0de', 1, now() + interval '1 hour'), ('0ld5e551', 1, now() - interval '1 hour'),
  ('50c1ab1e', 1, now() + interval '1 hour');
"""
PLAYBOOK = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: hello, path: gateway/hello}\nworkflow:\n" \
    "  - {step: start, tool: {kind: noop, result: {hello: '{{ workload.who }}'}}}\n"
# Stores a session, and posts it to the gateway that waits for it.
LOGIN = """apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: login, path: gateway/login}
workload: {gateway: "", request_id: ""}
workflow:
  - step: start
    tool:
      kind: postgres
      auth: pg_auth
      query: "insert into auth.sessions values ('10619ed0', 1, '2100-01-01T00:00:00Z')"
    next: {arcs: [{step: answer}]}
  - step: answer
    tool:
      kind: http
      method: POST
      url: "GATEWAY/api/internal/callback"
      json:
        request_id: "{{ workload.request_id }}"
        data:
          status: authenticated
          session_token: 10619ed0
          user: {user_id: 1, email: ada@example.com, display_name: Ada, roles: [user]}
          expires_at: "2100-01-01T00:00:00Z"
"""
CASES = []


def case(name):
    def record(function):
        CASES.append((name, function))
        return function
    return record


class Gateway(Program):
    """The published gateway, with the settings that the guide names and nothing else."""

    def __init__(self, stage, base_url, name="gateway"):
        self.port = free_port()
        self.base = f"http://127.0.0.1:{self.port}"
        environment = clean_environment(stage.directory)
        environment.update(
            NOETL_BASE_URL=base_url, NATS_URL=stage.nats, GATEWAY_BIND="127.0.0.1", ROUTER_PORT=str(self.port),
            AUTH_PLAYBOOK_LOGIN="gateway/login", AUTH_SESSION_DB_CREDENTIAL="pg_auth",
        )
        super().__init__(name, [stage.options.gateway], environment, stage.directory)

    def start(self):
        super().start()
        wait_for("the gateway", lambda: self.request("GET", "/health")[0] == 200, 60)
        return self

    def request(self, method, path, body=None, **headers):
        """Returns the status and the body, as JSON if it is JSON."""
        data = None if body is None else json.dumps(body).encode()
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(self.base + path, data, {"content-type": "application/json", **headers}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                status, text = response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            status, text = error.code, error.read().decode(errors="replace")
        except OSError:
            return 0, None
        try:
            return status, json.loads(text)
        except ValueError:
            return status, text

    def as_session(self, method, path, session, body=None):
        """Sends a session in both headers, as the published GUI and CLI do."""
        return self.request(method, path, body, authorization=f"Bearer {session}", x_session_token=session)


class Cast:
    """A server with sessions in Postgres, its gateway, and the tokens of both."""

    def __init__(self, options, directory):
        self.postgres, self.gateway = options.postgres, None
        settings = {"NOETL_AUTH": "token", "NOETL_SESSION_CREDENTIAL": "pg_auth"}
        self.stage = Stage(options, directory, "server", f"sqlite://{directory / 'noetl.db'}", settings)

    def start(self):
        subprocess.run(["psql", "-q", self.postgres, "-v", "ON_ERROR_STOP=1", "-c", TABLES], check=True)
        self.stage.start_nats()
        self.stage.start()
        self.stage.token = wait_for("admin token", lambda: admin_token(self.stage.server.logged()))
        self.token = self.create("gateway", "operator")
        credential = {"name": "pg_auth", "type": "postgres", "data": {"connection_string": self.postgres}}
        self.post("/api/credentials", credential)
        self.gateway = Gateway(self.stage, self.stage.base.replace("http://", f"http://gateway:{self.token}@")).start()
        for content in (PLAYBOOK, LOGIN.replace("GATEWAY", self.gateway.base)):
            self.post("/api/catalog/register", {"content": content})

    def create(self, name, role):
        return self.stage.own_cli("token", "create", "--name", name, "--role", role).split()[0]

    def post(self, path, body):
        status, reply = self.stage.request("POST", path, body)
        check(status == 200, f"{path}: {status} {reply}")

    def actors(self, execution):
        """Returns the actors that the events of an execution name."""
        events = self.stage.get(f"/api/executions/{execution}/events")[1]["events"]
        return [event["meta"]["actor"] for event in events if (event.get("meta") or {}).get("actor")]

    def end(self):
        if self.gateway:
            self.gateway.end()
        self.stage.remove()


def actor_of(token):
    return "token:" + token.split("_")[1]


@case("The token in `NOETL_BASE_URL` authenticates the gateway; without it, the server rejects its requests")
def base_url(cast):
    session = cast.create("ada", "operator")
    status, who = cast.gateway.as_session("GET", "/noetl/whoami", session)
    check(status == 200, f"{status} {who}")
    with Gateway(cast.stage, cast.stage.base, "bare") as bare:
        # The session is forwarded, and a token of ours; without it nothing authenticates the request.
        status, reply = bare.request("GET", "/noetl/whoami", authorization=f"Bearer {session}")
        check((status, reply["code"]) == (401, "not_authenticated"), f"{status} {reply}")


@case("An access token as the session: events name its holder, with the rights of both tokens")
def own_token(cast):
    session, viewer = cast.create("ada", "operator"), cast.create("bob", "viewer")
    status, who = cast.gateway.as_session("GET", "/noetl/whoami", session)
    check((status, who["actor"]) == (200, actor_of(session)), f"{status} {who}")
    status, begun = cast.gateway.as_session("POST", "/noetl/execute", session, {"path": "gateway/hello"})
    check(status == 200, f"{status} {begun}")
    check(cast.actors(begun["execution_id"]) == [actor_of(session)], f"{cast.actors(begun['execution_id'])}")
    status, reply = cast.gateway.as_session("POST", "/noetl/execute", viewer, {"path": "gateway/hello"})
    check((status, reply["code"]) == (403, "role_missing"), f"{status} {reply}")


@case("A session of the database: events name its user and the gateway's token")
def stored_session(cast):
    expected = f"session:pg_auth/1 via {actor_of(cast.token)}"
    status, who = cast.gateway.as_session("GET", "/noetl/whoami", "4be1c0de")
    check((status, who["actor"], who["roles"]) == (200, expected, ["operator"]), f"{status} {who}")
    status, begun = cast.gateway.as_session("POST", "/noetl/execute", "4be1c0de", {"path": "gateway/hello"})
    check(status == 200 and cast.actors(begun["execution_id"]) == [expected], f"{status} {begun}")
    status, reply = cast.gateway.request("POST", "/api/auth/validate", {"session_token": "4be1c0de"})
    check(status == 200 and reply["valid"] and reply["user"]["email"] == "ada@example.com", f"{status} {reply}")


@case("Unknown and expired sessions are rejected; one that the gateway still caches is rejected by the server")
def invalid_sessions(cast):
    for session in ("0ld5e551", "deadbeef", "noetl_0123456789abcdef_x"):
        status, reply = cast.gateway.as_session("GET", "/noetl/whoami", session)
        check((status, reply) == (401, "Invalid or expired session"), f"{session}: {status} {reply}")
    check(cast.gateway.as_session("GET", "/noetl/whoami", "50c1ab1e")[0] == 200, "the session is not valid at first")
    end = "update auth.sessions set is_active = false where session_token = '50c1ab1e'"
    subprocess.run(["psql", "-q", cast.postgres, "-c", end], check=True)
    status, reply = cast.gateway.as_session("GET", "/noetl/whoami", "50c1ab1e")
    check((status, reply["code"]) == (401, "session_unknown"), f"{status} {reply}")


@case("Without `x-session-token`, and with GraphQL, events name the gateway's token")
def without_header(cast):
    headers = {"authorization": "Bearer 4be1c0de"}
    status, begun = cast.gateway.request("POST", "/noetl/execute", {"path": "gateway/hello"}, **headers)
    check(status == 200 and cast.actors(begun["execution_id"]) == [actor_of(cast.token)], f"{status} {begun}")
    query = 'mutation { executePlaybook(name: "gateway/hello", variables: {who: "Ada"}) { executionId } }'
    status, reply = cast.gateway.request("POST", "/graphql", {"query": query}, **headers)
    check(status == 200 and not reply.get("errors"), f"{status} {reply}")
    execution = reply["data"]["executePlaybook"]["executionId"]
    check(cast.actors(execution) == [actor_of(cast.token)], f"{cast.actors(execution)}")


@case("A login starts the login playbook, and its session is valid")
def login(cast):
    with cast.stage.own_worker():
        status, reply = cast.gateway.request("POST", "/api/auth/login", {"auth0_token": "t", "auth0_domain": "example.com"})
        check(status == 200 and reply["session_token"] == "10619ed0", f"{status} {reply}")
        status, begun = cast.gateway.as_session("POST", "/noetl/execute", "10619ed0", {"path": "gateway/hello", "payload": {"who": "Ada"}})
        check(status == 200, f"{status} {begun}")
        outcome = cast.stage.outcome(begun["execution_id"])
        check(outcome[:2] == ("COMPLETED", {"hello": "Ada"}), f"{outcome}")


@case("The server log contains neither the gateway's token nor a session")
def server_log(cast):
    log = cast.stage.server.logged()
    secrets = [cast.token, "4be1c0de", "50c1ab1e", "10619ed0"]
    check(not [secret for secret in secrets if secret in log], "a secret is in the server log")


def main():
    parser = argparse.ArgumentParser()
    for name in ("noetl", "gateway"):
        parser.add_argument(f"--{name}", required=True, type=pathlib.Path)
    parser.add_argument("--postgres", required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--directory", type=pathlib.Path, help="keep logs here")
    options = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as made:
        cast = Cast(options, options.directory or pathlib.Path(made))
        try:
            cast.start()
            for name, function in CASES:
                if options.only not in name:
                    continue
                since = time.monotonic()
                try:
                    function(cast)
                    failure = None
                except (CaseError, OSError, ValueError, KeyError, TypeError, subprocess.CalledProcessError) as error:
                    failure = f"{type(error).__name__}: {error}"
                failed += failure is not None
                print(f"  {'FAILED' if failure else 'passed'} {time.monotonic() - since:5.1f} s  {name}", file=sys.stderr)
                if failure:
                    print(f"         {failure}", file=sys.stderr)
        finally:
            cast.end()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
