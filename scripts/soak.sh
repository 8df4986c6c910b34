#!/usr/bin/env bash
# Two servers and a database of their own under load, killed at random for MINUTES (default 10); then
# every log is verified. Exits with 1 when anything is wrong. Stdout holds one JSON line.
#
#   MINUTES=2 SEED=7 PROFILE=dev scripts/soak.sh
set -euo pipefail
# shellcheck source=scripts/faults.sh
. "$(dirname "$0")/faults.sh"

faults_ground soak
faults soak --minutes "${MINUTES:-10}"
