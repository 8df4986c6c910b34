#!/usr/bin/env bash
# Puts together what docs/guide/deploy.md describes, on this machine and without containers: a private
# Postgres and NATS, two servers, three workers. Then it is used, a server is restarted and a worker
# killed under load, and every log is verified.
# usage: deploy/try.sh [path of the noetl program]
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh
export NO_PROXY=127.0.0.1,localhost no_proxy=127.0.0.1,localhost

if [ $# = 0 ]; then
  cargo build --locked --release --package noetl-cli
fi
noetl=$(realpath "${1:-bin/noetl}")
runs=${RUNS:-100}
place=$(mktemp -d)
chmod 755 "$place"
declare -A running=()

finish() {
  for name in "${!running[@]}"; do kill -KILL "${running[$name]}" 2>/dev/null || true; done
  wait 2>/dev/null || true
  scripts/services/nats.sh remove "$place/nats" >/dev/null 2>&1 || true
  scripts/services/postgres.sh remove "$place/postgres" >/dev/null 2>&1 || true
  rm -rf "$place"
}
trap finish EXIT

fail() {
  say "  try: $*"
  for log in "$place"/*.log; do
    say "--- $(basename "$log")"
    tail -n 15 "$log" >&2
  done
  exit 1
}

free_port() {
  python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# until_true <seconds> <what> <command...>
until_true() {
  local left=$(($1 * 5)) what=$2
  shift 2
  until "$@" >/dev/null 2>&1; do
    left=$((left - 1))
    [ "$left" -gt 0 ] || fail "$what"
    sleep 0.2
  done
}

say "Postgres and NATS"
database=$(scripts/services/postgres.sh start "$place/postgres")
psql --quiet "$database" --command 'create database noetl'
export NOETL_DATABASE_URL=${database%/*}/noetl
# The users of the compose file, on a port and in a directory of its own.
grep --invert-match --extended-regexp '^http:|store_dir:' deploy/compose/nats.conf >"$place/nats.conf"
NATS_SERVER_PASSWORD=s-$(python3 -c 'import secrets; print(secrets.token_hex(16))')
NATS_WORKER_PASSWORD=w-$(python3 -c 'import secrets; print(secrets.token_hex(16))')
export NATS_SERVER_PASSWORD NATS_WORKER_PASSWORD
nats=$(scripts/services/nats.sh start "$place/nats" --config "$place/nats.conf")
NOETL_NATS_URL=nats://server:$NATS_SERVER_PASSWORD@${nats#nats://}
worker_nats_url=nats://worker:$NATS_WORKER_PASSWORD@${nats#nats://}
export NOETL_NATS_URL NOETL_EVENT_STREAM_ENABLED=true NOETL_AUTH=token
NOETL_ENCRYPTION_KEY=$(python3 -c 'import base64, os; print(base64.b64encode(os.urandom(32)).decode())')
NOETL_INTERNAL_API_TOKEN=$(python3 -c 'import secrets; print(secrets.token_hex(32))')
export NOETL_ENCRYPTION_KEY NOETL_INTERNAL_API_TOKEN

say "Two servers"
declare -A port=([1]=$(free_port) [2]=$(free_port))
start_server() {
  NOETL_PUBLIC_SERVER_URL=http://127.0.0.1:${port[$1]} "$noetl" server --port "${port[$1]}" \
    >>"$place/server-$1.log" 2>&1 &
  running[server-$1]=$!
  until_true 60 "server $1 did not start" curl --fail --silent "http://127.0.0.1:${port[$1]}/api/health"
}
start_server 1
NOETL_TOKEN=$(grep --only-matching --max-count 1 'noetl_[0-9a-f]*_[A-Za-z0-9_-]*' "$place/server-1.log") ||
  fail "no first token was printed"
export NOETL_TOKEN
start_server 2

say "Three workers, with a token of their own"
"$noetl" token create --role worker --pool shared --file "$place/worker-token" \
  --server-url "http://127.0.0.1:${port[1]}"
start_worker() {
  env --unset NOETL_TOKEN --unset NOETL_INTERNAL_API_TOKEN --unset NOETL_ENCRYPTION_KEY \
    "$noetl" worker --server "http://127.0.0.1:${port[$2]}" --token-file "$place/worker-token" \
    --name "worker-$1" --slots 4 --nats-url "$worker_nats_url" >>"$place/worker-$1.log" 2>&1 &
  running[worker-$1]=$!
}
start_worker 1 1
start_worker 2 1
start_worker 3 2
at() { "$noetl" "${@:2}" --server-url "http://127.0.0.1:${port[$1]}"; }
listed() { [ "$(at 1 workers --output json | grep --count '"worker-[123]"')" -ge 3 ]; }
until_true 30 "three workers are not listed" listed
at 1 workers

say "A playbook, registered at one server and run by way of the other"
at 1 register playbook -f examples/hello.yaml
at 2 execute examples/hello --set who=Ada --follow

say "$runs executions, while a server is restarted and a worker is killed"
for _ in $(seq "$runs"); do at 2 execute examples/hello >/dev/null 2>>"$place/load.log"; done &
load=$!
kill "${running[server-1]}"
wait "${running[server-1]}" || true
start_server 1
kill -KILL "${running[worker-3]}"
start_worker 4 2
wait "$load" || fail "an execution could not be started"
all_over() {
  local running_now
  running_now=$(at 1 executions --status RUNNING --output json | grep --count '"execution_id"' || true)
  [ "$running_now" = 0 ]
}
until_true 180 "executions do not end" all_over
ended=$(psql --quiet --no-align --tuples-only "$NOETL_DATABASE_URL" \
  --command "select status || ' ' || count(*) from noetl.execution group by status order by 1")
say "  $ended"
[ "$ended" = "COMPLETED $((runs + 1))" ] || fail "not every execution completed"

say "Every log verified"
for name in "${!running[@]}"; do kill "${running[$name]}" 2>/dev/null || true; done
wait
running=()
"$noetl" db validate --database-url "$NOETL_DATABASE_URL"
say "It works."
