#!/usr/bin/env bash
# Simulated worlds: the whole control plane on simulated time, one process per seed. Stops at the first
# that goes wrong, makes it small, prints what happened in it and how to repeat it.
#
#   SEEDS=5000..6000 PROFILE=dev scripts/sim.sh
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=scripts/needs.sh
. scripts/needs.sh

profile=${PROFILE:-release}
provide_build_needs
cargo build --locked --profile "$profile" --package noetl-test-world --bin noetl-sim >&2
"$(target_dir)/${profile/#dev/debug}/noetl-sim" --seeds "${SEEDS:-1000}"
