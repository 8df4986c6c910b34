#!/usr/bin/env bash
# Runs the real-time lane RUNS (10) times in a row and stops at the first run that fails. Prints every flake by
# name; more than two in one run fail that run.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=scripts/lanes.sh
. scripts/lanes.sh

start_gate
all_flakes=$(mktemp)
stage "setup" scripts/setup.sh
stage "shared database" share_postgres
for run in $(seq "${RUNS:-10}"); do
  : >"$NOETL_TEST_FLAKES_FILE"
  stage "run $run" lane_real_time
  cat "$NOETL_TEST_FLAKES_FILE" >>"$all_flakes"
done
mv "$all_flakes" "$NOETL_TEST_FLAKES_FILE"
