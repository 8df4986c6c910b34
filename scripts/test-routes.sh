#!/usr/bin/env bash
# The tests of the routes on another store than memory: scripts/test-routes.sh sqlite|postgres [MODULE...]
# What a route answers may not depend on the store. Without a module, all of them.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

export NOETL_TEST_STORE=$1
shift
if has cargo-nextest; then
  # All of the workspace, as the tests before it: with one package alone, much of what it needs would be
  # built again with other features.
  wanted='binary_id(noetl-server::it)'
  if [ $# -gt 0 ]; then wanted+=" & test(/^($(IFS='|' && echo "$*"))::/)"; fi
  cargo nextest run --locked --workspace --profile ci --test-threads "$(test_threads)" -E "$wanted"
else
  cargo test --locked --package noetl-server --test it --no-fail-fast -- "${@/%/::}"
fi
