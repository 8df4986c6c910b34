#!/usr/bin/env bash
# Asks a running `noetl dev` everything its OpenAPI document says can be asked, and much that it does
# not (schemathesis, from PyPI): no request may end in a failure of the server, and every answer has to
# be one the document names, in the shape it gives.
#
#   scripts/fuzz-api.sh [examples per route, 20 unless said] [the program, built when left out]
#
# SEED makes it ask the same as another run with that seed. With the argument `install` it only installs schemathesis into target/services.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

SCHEMATHESIS=4.32.5
home=$(target_dir)/services/schemathesis-$SCHEMATHESIS

install_schemathesis() {
  [ -e "$home/installed" ] && return
  rm -rf "$home"
  python3 -m venv "$home"
  "$home/bin/pip" install --quiet --disable-pip-version-check "schemathesis==$SCHEMATHESIS"
  touch "$home/installed"
}

mkdir -p "$(dirname "$home")"
(flock 9 && install_schemathesis) 9>"$home.lock" >&2
[ "${1:-}" = install ] && exit

examples=${1:-20}
noetl=${2:-}
if [ -z "$noetl" ]; then
  cargo build --quiet --locked -p noetl-cli
  noetl=$(target_dir)/debug/noetl
fi

directory=$(mktemp -d)
token=fuzz-$RANDOM$RANDOM
NOETL_INTERNAL_API_TOKEN=$token "$noetl" dev --port 0 --auth open --data "$directory/data" --slots 2 \
  >"$directory/out" 2>&1 &
server=$!
trap 'kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; rm -rf "$directory"' EXIT

address=
for _ in $(seq 300); do
  address=$(sed -n 's/.*noetl listens on \(http[^ ]*\).*/\1/p' "$directory/out")
  [ -n "$address" ] && break
  sleep 0.1
done
[ -n "$address" ] || { cat "$directory/out"; say "The server did not start."; exit 1; }

# Something to find: what is asked about in the answer to another question (the stateful phase) should be there.
for playbook in hello wait approval errors loop; do
  python3 -c 'import json, sys; print(json.dumps({"content": open(sys.argv[1]).read()}))' "examples/$playbook.yaml" |
    curl -sf "$address/api/catalog/register" -H 'content-type: application/json' -d @- >/dev/null
  curl -sf "$address/api/execute" -H 'content-type: application/json' -d "{\"path\": \"examples/$playbook\"}" >/dev/null
done

# Streams end with their execution, or with whoever follows a list; SQL of others runs on Postgres only, and this is SQLite.
ask() {
  "$home/bin/schemathesis" run "$address/api/openapi.json" "$@" \
    --checks not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance \
    --exclude-path '/api/executions/{id}/stream' --exclude-path /api/executions/stream --exclude-path /api/postgres/execute \
    --phases examples,coverage,fuzzing,stateful \
    --max-examples "$examples" --request-timeout 40 --suppress-health-check all --warnings off \
    ${SEED:+--seed "$SEED"} --continue-on-failure --no-color
}
# As anybody, and as a system pool what is only for those: it is another caller wherever it may ask.
ask --exclude-path-regex '^/api/internal/'
ask --include-path-regex '^/api/internal/' --header "Authorization: Bearer $token"
kill -0 "$server" 2>/dev/null || { tail -n 50 "$directory/out"; say "The server ended."; exit 1; }
if grep -q panicked "$directory/out"; then
  grep -A 3 panicked "$directory/out"
  say "A handler panicked."
  exit 1
fi
