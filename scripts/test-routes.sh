#!/usr/bin/env bash
# The tests of the routes on another store than memory: scripts/test-routes.sh sqlite|postgres [MODULE...]
# What a route answers may not depend on the store. Without a module, all of them.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

export NOETL_TEST_STORE=$1
shift
modules=("${@/%/::}")
if has cargo-nextest; then
  cargo nextest run --locked --package noetl-server --test it --profile ci "${modules[@]}"
else
  cargo test --locked --package noetl-server --test it --no-fail-fast -- "${modules[@]}"
fi
