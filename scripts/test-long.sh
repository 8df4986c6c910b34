#!/usr/bin/env bash
# Runs the tests with far more kills, messages, and generated cases than a change can wait for, then the release
# program as a newcomer uses it. Generated cases get a fresh seed, which is printed; set PROPTEST_RNG_SEED and
# NOETL_TEST_SEED to repeat a run.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=scripts/lanes.sh
. scripts/lanes.sh

fresh=$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')
export PROPTEST_RNG_SEED=${PROPTEST_RNG_SEED:-$fresh} NOETL_TEST_SEED=${NOETL_TEST_SEED:-$fresh}
start_gate
export NOETL_KILLS=${NOETL_KILLS:-500}
export PROPTEST_CASES=${PROPTEST_CASES:-10000}
export NOETL_FAN=${NOETL_FAN:-10000}
export NOETL_MESSAGES=${NOETL_MESSAGES:-50000}
say "Seeds: PROPTEST_RNG_SEED=$PROPTEST_RNG_SEED NOETL_TEST_SEED=$NOETL_TEST_SEED"

stage "setup" scripts/setup.sh
stage "shared database" share_postgres
stage "tests with $NOETL_KILLS kills and $PROPTEST_CASES cases" tests long 'all()'
stage "routes on SQLite" lane_routes sqlite
if has_services; then stage "routes on Postgres" lane_routes postgres; fi
stage "DuckDB" lane_duckdb
stage "release build" scripts/build.sh
stage "smoke" scripts/smoke.sh bin/noetl
if [ "$(id -u)" = 0 ]; then
  stage "isolation levels of deployments" deploy/levels.sh bin/noetl
else
  unsupported "root" "run it as root" "the isolation levels of deployments"
fi
stage "backup drill" scripts/backup-drill.sh bin/noetl
stage "units of the web UI" scripts/test-web.sh units
stage "web" scripts/test-web.sh bin/noetl
