#!/usr/bin/env bash
# Builds the program as it ships and starts server and worker on an embedded database.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

say "Building noetl; the first time takes some minutes."
cargo build --locked --release --package noetl-cli
noetl=$(target_dir)/release/noetl

cat >&2 <<TEXT

Starting $noetl dev. Once it runs, look here:

  http://127.0.0.1:8082/api/health

and try this in a second terminal:

  # run a playbook to its end, without the server
  $noetl run examples/hello.yaml
  $noetl run examples/hello.yaml --set who=Ada

  # register a playbook with the server, then execute it
  python3 -c 'import json, sys; print(json.dumps({"content": sys.stdin.read()}))' \\
    < examples/hello.yaml |
    curl -s http://127.0.0.1:8082/api/catalog/register -H 'content-type: application/json' -d @-
  curl -s http://127.0.0.1:8082/api/execute -H 'content-type: application/json' \\
    -d '{"path": "examples/hello", "payload": {"who": "Ada"}}'

  # see how it went, with the execution_id from that answer
  curl -s http://127.0.0.1:8082/api/executions/<execution_id>

Stop it with Ctrl-C. Options go behind ARGS: make run ARGS='--port 9000'.

TEXT
exec "$noetl" dev "$@"
