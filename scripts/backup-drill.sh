#!/usr/bin/env bash
# A backup is good when it was restored: on SQLite and on Postgres, a server and a worker run
# executions, a copy is taken while they do, everything is destroyed, and the copy goes on elsewhere.
# Then everything is there that was when the copy was taken, what was under way ends, secrets open,
# and logs and audit are sound.
#
#   scripts/backup-drill.sh [program [sqlite|postgres ...]]
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

# What runs on this machine is asked directly, whatever proxy the environment names.
export NO_PROXY=127.0.0.1,localhost no_proxy=127.0.0.1,localhost

noetl=$(realpath "${1:-bin/noetl}")
shift || true
stores=("$@")
if [ ${#stores[@]} = 0 ]; then
  stores=(sqlite)
  if [ "${NOETL_TEST_SERVICES:-}" = off ]; then
    skip "services" "unset NOETL_TEST_SERVICES" "the backup drill on Postgres"
  else
    stores+=(postgres)
  fi
fi

# Outside the checkout: the user Postgres runs as may not be able to enter it.
place=$(mktemp -d "${NOETL_SERVICES_DIR:-${TMPDIR:-/tmp}}/noetl-drill-XXXXXX")
# Commands of steps wait for this file; each process of the two lives has its own environment.
gate=$place/gate
# Beside it: what mktemp makes is for one user only, and Postgres runs as another.
postgres=$place-postgres
processes=()

finish() {
  if [ ${#processes[@]} -gt 0 ]; then kill -KILL "${processes[@]}" 2>/dev/null || true; fi
  if [ -d "$postgres" ]; then scripts/services/postgres.sh remove "$postgres" || true; fi
  rm -rf "$place"
}
trap finish EXIT

fail() {
  say "  drill on $store: $*"
  tail -n 30 "$place/$store"/*.log >&2 || true
  exit 1
}

# Asks again until it is so; two minutes are far beyond what any of this takes.
until_true() {
  local deadline=$((SECONDS + 120))
  until "$@"; do
    if [ "$SECONDS" -ge "$deadline" ]; then return 1; fi
    sleep 0.1
  done
}

# field <name>: that field of the JSON object on stdin
field() { python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$1"; }

ask() { curl -fsS "$url$1"; }
send() { curl -fsS "$url$1" -H 'content-type: application/json' -d "$2"; }

healthy() { curl -fs "$url/api/health" >/dev/null 2>&1; }

# start_server <database> <directory of content> <key>
start_server() {
  local port
  port=$(free_port)
  url=http://127.0.0.1:$port
  NOETL_RESULTS_URL=file://$2 NOETL_ENCRYPTION_KEY=$3 NOETL_WORKER_LEASE_SECS=15 \
    "$noetl" server --port "$port" --database-url "$1" >>"$place/$store/server.log" 2>&1 &
  running=("$!")
  processes+=("$!")
  until_true healthy || fail "no server at $url"
}

# start <database> <directory of content> <key>: a server and a worker
start() {
  start_server "$@"
  "$noetl" worker --server "$url" >>"$place/$store/worker.log" 2>&1 &
  running+=("$!")
  processes+=("$!")
}

# Kills everything that runs, without notice.
kill_all() {
  kill -KILL "${running[@]}" 2>/dev/null || true
  wait "${running[@]}" 2>/dev/null || true
}

register() {
  local body
  body=$(python3 -c 'import json, sys; print(json.dumps({"content": sys.stdin.read()}))')
  send /api/catalog/register "$body" >/dev/null
}

# begin <path>: starts an execution and prints its id
begin() { send /api/execute "{\"path\": \"$1\"}" | field execution_id; }

status_of() { ask "/api/executions/$1/status" | field status; }

has_completed() {
  case $(status_of "$1") in
    FAILED | CANCELLED) fail "execution $1 ended $(ask "/api/executions/$1/status")" ;;
    COMPLETED) ;;
    *) return 1 ;;
  esac
}

prepare() {
  register <<'YAML'
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: large, path: drill/large}
workflow:
  - step: start
    tool: {kind: python, code: "result = {'rows': ['row %d' % n for n in range(20000)]}"}
    next: {arcs: [{step: count}]}
  - step: count
    tool: {kind: python, input: {rows: "{{ start.rows }}"}, code: "assert len(rows) == 20000; result = {'rows': len(rows)}"}
YAML
  register <<YAML
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: under_way, path: drill/under_way}
workflow:
  - step: start
    tool: {kind: shell, command: "until [ -e $gate ]; do sleep 0.2; done"}
    next: {arcs: [{step: end}]}
  - step: end
    tool: {kind: noop}
YAML
  register <<'YAML'
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: asking, path: drill/asking}
workflow:
  - step: start
    tool: {kind: approval, message: "go on?", timeout: 1h}
YAML
  register <<'YAML'
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: short, path: drill/short}
workflow:
  - step: start
    tool: {kind: noop}
YAML
  send /api/credentials '{"name": "drill", "type": "t", "data": {"password": "correct horse battery"}}' >/dev/null
}

opens() { [ "$(ask '/api/credentials/drill?include_data=true' 2>/dev/null | field data 2>/dev/null)" = "{'password': 'correct horse battery'}" ]; }

is_running() { ask "/api/executions/$1/events" | grep -q command.claimed; }

# Starts short executions until it is stopped, so that the copy is of a moment in the middle of work.
work() {
  while [ ! -e "$place/$store/enough" ]; do begin drill/short >>"$place/$store/short" || return 0; done
}

are_under_way() { [ "$(wc -l 2>/dev/null <"$place/$store/short" || echo 0)" -ge 20 ]; }

audit_head() { "$noetl" audit verify --database-url "$1" --output json | field head; }

# back_up: the database, then content, so that nothing the one names is missing in the other; the key apart
back_up() {
  mkdir -p "$place/$store/backup" "$place/$store/apart"
  case $store in
    sqlite) "$noetl" db backup "$place/$store/backup/noetl.db" --database-url "$database" 2>>"$place/$store/backup.log" ;;
    postgres) pg_dump --format=custom --schema=noetl --file="$place/$store/backup/noetl.dump" "$database" ;;
  esac
  cp -r "$place/$store/content" "$place/$store/backup/content"
  printf '%s' "$key" >"$place/$store/apart/key"
}

make_database() {
  case $store in
    sqlite)
      mkdir -p "$place/$store/$1"
      database=sqlite://$place/$store/$1/noetl.db
      ;;
    postgres)
      psql -q "$base" -c "create database drill_$1"
      database=${base%/*}/drill_$1
      ;;
  esac
}

destroy() {
  kill_all
  rm -rf "$place/$store/content"
  case $store in
    sqlite) rm -rf "$place/$store/first" ;;
    postgres) psql -q "$base" -c "drop database drill_first with (force)" ;;
  esac
}

restore() {
  make_database second
  case $store in
    sqlite) cp "$place/$store/backup/noetl.db" "$place/$store/second/noetl.db" ;;
    postgres) pg_restore --exit-on-error --dbname="$database" "$place/$store/backup/noetl.dump" ;;
  esac
  cp -r "$place/$store/backup/content" "$place/$store/elsewhere"
  key=$(cat "$place/$store/apart/key")
}

drill() {
  local large under_way asking head ended=0 known waiting
  mkdir -p "$place/$store/content"
  rm -f "$gate"
  key=$(head -c 32 /dev/urandom | base64)
  make_database first
  start "$database" "$place/$store/content" "$key"
  prepare
  large=$(begin drill/large)
  under_way=$(begin drill/under_way)
  asking=$(begin drill/asking)
  until_true has_completed "$large" || fail "execution $large did not end"
  until_true is_running "$under_way" || fail "execution $under_way was not taken"
  opens || fail "the secret does not open before anything happened"
  [ -n "$(find "$place/$store/content" -type f)" ] || fail "no result was kept as content"

  work &
  worker_of_starts=$!
  processes+=("$worker_of_starts")
  until_true are_under_way || fail "nothing is started"
  cp "$place/$store/short" "$place/$store/before"
  # An earlier head is a part of every later chain.
  head=$(audit_head "$database")
  back_up
  touch "$place/$store/enough"
  wait "$worker_of_starts"
  destroy

  restore
  # The copy is sound before anything runs on it.
  "$noetl" db validate --database-url "$database" >>"$place/$store/validate.log" 2>&1 || {
    cat "$place/$store/validate.log" >&2
    fail "the copy is not sound"
  }
  # Without a worker: each one that is killed uses up an attempt of the steps that it holds.
  start_server "$database" "$place/$store/elsewhere" "$(head -c 32 /dev/urandom | base64)"
  if opens; then fail "the secret opens with another key"; fi
  kill_all
  start "$database" "$place/$store/elsewhere" "$key"
  opens || fail "the secret does not open"
  has_completed "$large" || fail "execution $large is not as it was"
  # What needs the large result again has it.
  known=$(send "/api/executions/$large/retry" '{"from": "count"}' | field execution_id)
  until_true has_completed "$known" || fail "the large result is not there"
  # What had begun when the copy was taken goes on; nothing that was answered before is missing.
  touch "$gate"
  until_true has_completed "$under_way" || fail "execution $under_way did not end"
  waiting=$(ask /api/approvals | python3 -c 'import json, sys; a = json.load(sys.stdin)["approvals"]; assert len(a) == 1, a; print(a[0]["command_id"], a[0]["token"])')
  send "/api/executions/$asking/answers/${waiting% *}" "{\"token\": \"${waiting#* }\", \"data\": {\"approved\": true}}" >/dev/null
  until_true has_completed "$asking" || fail "execution $asking did not end"
  while read -r known; do
    until_true has_completed "$known" || fail "execution $known was answered before the copy and did not end"
    ended=$((ended + 1))
  done <"$place/$store/before"
  kill_all
  "$noetl" db validate --database-url "$database" >>"$place/$store/validate.log" 2>&1 || {
    cat "$place/$store/validate.log" >&2
    fail "what was restored is not sound"
  }
  "$noetl" audit verify --database-url "$database" --head "$head" >&2 || fail "the audit is not sound"
  say "  $store: restored; $((ended + 3)) executions from before the copy ended, 3 of them under way or large"
}

for store in "${stores[@]}"; do
  mkdir -p "$place/$store"
  if [ "$store" = postgres ]; then base=$(scripts/services/postgres.sh start "$postgres"); fi
  drill
done
