#!/usr/bin/env bash
# Uses a built program the way a newcomer does: checks and runs every example, then starts the
# server, registers and executes a playbook over HTTP, and stops it.
# usage: scripts/smoke.sh <path of the noetl program>
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

# What runs on this machine is asked directly, whatever proxy the environment names.
export NO_PROXY=127.0.0.1,localhost no_proxy=127.0.0.1,localhost

noetl=$(realpath "$1")
examples=$PWD/examples
place=$(mktemp -d)
server=

finish() {
  if [ -n "$server" ]; then kill -KILL "$server" 2>/dev/null || true; fi
  rm -rf "$place"
}
trap finish EXIT

fail() {
  say "  smoke: $*"
  if [ -f "$place/server.log" ]; then tail -n 40 "$place/server.log" >&2; fi
  exit 1
}

# prints <example> <text its output holds> [options...]
prints() {
  local example=$1 expected=$2 output
  shift 2
  output=$("$noetl" run "$examples/$example.yaml" "$@" 2>"$place/run.log") || {
    cat "$place/run.log" >&2
    fail "$example.yaml failed"
  }
  case $output in
    *"$expected"*) say "  $example.yaml printed \"$expected\"" ;;
    *) fail "$example.yaml did not print \"$expected\" but: $output" ;;
  esac
}

run_examples() {
  "$noetl" check "$examples"/*.yaml >&2
  prints hello "Hello, world!"
  prints hello "Hello, Ada!" --set who=Ada
  prints branch "21 degrees is mild"
  prints branch "30 degrees is hot" --set degrees=30
  prints join "both branches are in"
  prints cycle "counted to 5"
  prints http "did not answer" --set url=http://127.0.0.1:9/
  prints python "the mean of 3 numbers is 4.0"
  prints errors "went on without it"
  prints shell "3 lines"
}

# field <name>: that field of the JSON object on stdin
field() { python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$1"; }

# Asks again until the answer is there; 30 s is far beyond what any of this takes.
until_true() {
  local deadline=$((SECONDS + 30))
  until "$@"; do
    if [ "$SECONDS" -ge "$deadline" ]; then return 1; fi
    sleep 0.1
  done
}

healthy() {
  kill -0 "$server" 2>/dev/null || fail "the server stopped while starting"
  curl -fs "$url/api/health" >/dev/null 2>&1
}

completed() {
  local status
  status=$(curl -fs "$url/api/executions/$id/status" -H "$header" | field status)
  case $status in
    FAILED | CANCELLED) fail "the execution ended $status" ;;
    *) [ "$status" = COMPLETED ] ;;
  esac
}

stopped() { ! kill -0 "$server" 2>/dev/null; }

use_server() {
  local port body header
  port=$(free_port)
  url=http://127.0.0.1:$port
  mkdir "$place/served"
  # Its data lands below the folder it is started in.
  cd "$place/served"
  NOETL_PORT=$port "$noetl" dev >"$place/server.log" 2>&1 &
  server=$!
  until_true healthy || fail "no health at $url within 30 s"

  body=$(python3 -c 'import json, sys; print(json.dumps({"content": sys.stdin.read()}))' \
    <"$examples/hello.yaml")
  # The token of the server, as its user finds it: without a flag, at the address it was made for.
  header=$("$noetl" token header --server-url "$url") || fail "there is no token for $url"
  [ "$(curl -s -o "$place/refusal" -w '%{http_code}' "$url/api/executions")" = 401 ] ||
    fail "the server answers without a token"
  curl -fsS "$url/api/catalog/register" -H "$header" -H 'content-type: application/json' -d "$body" >/dev/null ||
    fail "registering failed"
  id=$(curl -fsS "$url/api/execute" -H "$header" -H 'content-type: application/json' \
    -d '{"path": "examples/hello", "payload": {"who": "Ada"}}' | field execution_id) ||
    fail "executing failed"
  until_true completed || fail "execution $id did not complete within 30 s"
  say "  the server completed execution $id"

  # An example that meets a server that does answer.
  prints http "answered 200" --set "url=$url/health"

  kill -TERM "$server"
  until_true stopped || fail "the server did not stop within 30 s of being asked"
  wait "$server" || fail "the server stopped with exit code $?"
  server=
  say "  the server stopped when asked"
}

run_examples
use_server
