#!/usr/bin/env bash
# The tests with far more kills and generated cases than a change can wait for.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

# The servers that tests share outlive every test, and go with the whole.
finish() {
  summary
  scripts/services/pgbouncer.sh remove-shared || true
  scripts/services/postgres.sh remove-shared || true
}
trap finish EXIT

export NOETL_KILLS=${NOETL_KILLS:-500}
export PROPTEST_CASES=${PROPTEST_CASES:-10000}
export NOETL_FAN=${NOETL_FAN:-10000}
export NOETL_MESSAGES=${NOETL_MESSAGES:-50000}

run_tests() {
  if has cargo-nextest; then
    cargo nextest run --locked --workspace --profile long
  else
    cargo test --locked --workspace --lib --bins --tests --no-fail-fast
  fi
}

stage "setup" scripts/setup.sh
stage "tests with $NOETL_KILLS kills and $PROPTEST_CASES cases" run_tests
stage "routes on sqlite" scripts/test-routes.sh sqlite
stage "routes on postgres" scripts/test-routes.sh postgres
# Only programs that are built with it have DuckDB.
if has npm; then stage "duckdb" scripts/duckdb.sh test; fi
