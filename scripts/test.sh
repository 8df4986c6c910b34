#!/usr/bin/env bash
# Runs everything a change has to pass: checks, both lanes of tests, then the program as a newcomer uses it.
# Every stage uses the programs that the stage "build" leaves in target/debug. `make test-long` repeats the last
# part with the release program.
#
# With CI set, a missing part fails the run; otherwise the summary lists every skip.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=scripts/lanes.sh
. scripts/lanes.sh

start_gate

# The programs that later stages run, together with the tests: another selection of packages would change the
# features of shared libraries and build them again.
build_all() {
  scripts/web.sh beside cargo build --locked --workspace --bins --tests
}

stage "setup" scripts/setup.sh
# shellcheck source=scripts/verify.sh
. scripts/verify.sh
stage "build" build_all
# First, because a stale snapshot is the most common failure and shows within a minute.
stage "snapshots" lane_snapshots
stage "shared database" share_postgres
stage "deterministic tests" lane_deterministic
stage "simulation" "$PROGRAMS/noetl-sim" --seeds "${SEEDS:-1000}"
# The heart of the API on the stores people use; `make test-long` asks all of it.
heart=(internal intake projection outbox cleanup replay subscriptions ingress events commands executions runtime metrics dedup batches)
stage "routes on SQLite" lane_routes sqlite "${heart[@]}"
if has_services; then stage "routes on Postgres" lane_routes postgres "${heart[@]}"; fi
stage "DuckDB" lane_duckdb
stage "real-time tests" lane_real_time
stage "smoke" scripts/smoke.sh "$PROGRAMS/noetl"
stage "backup drill" scripts/backup-drill.sh "$PROGRAMS/noetl"
stage "web" scripts/test-web.sh "$PROGRAMS/noetl"
if has_services; then
  # The same requests in every run; `make fuzz-api` makes others each time.
  stage "API" env SEED=1 scripts/fuzz-api.sh 5 "$PROGRAMS/noetl"
  # Each fault once, under little work; `make chaos` has more.
  stage "chaos" env STEPS=500 SEED=1 PROGRAMS="$PROGRAMS" scripts/chaos.sh
fi
