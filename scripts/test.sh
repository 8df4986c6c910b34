#!/usr/bin/env bash
# Runs everything a change has to pass: checks, both lanes of tests, then the program as a newcomer uses it.
# Every stage uses the programs that the stage "build" leaves in target/debug. `make test-long` repeats the last
# part with the release program.
#
# With CI set, a missing part fails the run; otherwise the summary lists every skip. Without CI, test binaries that
# passed a whole run in this clone and have not changed since are left out (ALL=1 runs them).
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

# The heart of the API on the stores people use; `make test-long` asks all of it.
HEART=(internal intake projection outbox cleanup replay subscriptions ingress events commands executions runtime metrics dedup batches)

# Deterministic stages that keep the processors busy.
lane_computing() {
  scripts/test-web.sh units
  if ! is_unchanged noetl-test-world::bin/noetl-sim; then "$PROGRAMS/noetl-sim" --seeds "${SEEDS:-1000}"; fi
  lane_routes sqlite "${HEART[@]}"
  if has_services; then lane_routes postgres "${HEART[@]}"; fi
}

stage "setup" scripts/setup.sh
# shellcheck source=scripts/verify.sh
. scripts/verify.sh
stage "build" build_all
stage "unchanged tests" find_unchanged
# First, because a stale snapshot is the most common failure and shows within a minute.
stage "snapshots" lane_snapshots
stage "shared database" share_postgres
stage "deterministic tests" lane_deterministic
# Real-time tests wait most of their time, so stages that only compute take the processors meanwhile.
beside "computing stages" at_idle lane_computing
stage "real-time tests" lane_real_time
stage "rest of the computing stages" await_beside
# After the real-time lane, whose tests start a program of noetl-tools: this build links that one with DuckDB.
beside "DuckDB" lane_duckdb
if has_services; then
  # Each fault once, under little work; `make chaos` has more. It waits for leases and restarts, so the program is
  # used meanwhile.
  beside "chaos" env STEPS=500 SEED=1 PROGRAMS="$PROGRAMS" scripts/chaos.sh
fi
stage "smoke" scripts/smoke.sh "$PROGRAMS/noetl"
stage "backup drill" scripts/backup-drill.sh "$PROGRAMS/noetl"
stage "web" scripts/test-web.sh "$PROGRAMS/noetl"
# The same requests in every run; `make fuzz-api` makes others each time.
if has_services; then stage "API" env SEED=1 scripts/fuzz-api.sh 5 "$PROGRAMS/noetl"; fi
stage "rest of chaos and DuckDB" await_beside
stage "record" record_passed
