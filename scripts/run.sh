#!/usr/bin/env bash
# Builds the program as it ships and starts server and worker on an embedded database.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=scripts/needs.sh
. scripts/needs.sh

provide_build_needs
warn_without_python
scripts/web.sh if-there
say "Building noetl; the first time takes some minutes."
cargo build --locked --release --package noetl-cli
noetl=$(target_dir)/release/noetl

# What depends on the address it listens on, it says itself.
cat >&2 <<TEXT

A playbook also runs to its end without the server; try in a second terminal:

  $noetl run examples/hello.yaml --set who=Ada

Options go behind ARGS: make run ARGS='--port 9000'.

TEXT
exec "$noetl" dev "$@"
