#!/usr/bin/env bash
# Two servers, three workers, a database and a bus of their own under work, and each broken in each way,
# one after the other; then every log is verified. Exits with 1 when anything is wrong. A line per fault
# on stderr, one JSON line on stdout.
#
#   STEPS=500 ONLY=NATS PROFILE=dev scripts/chaos.sh
set -euo pipefail
# shellcheck source=scripts/faults.sh
. "$(dirname "$0")/faults.sh"

faults_ground chaos
faults_hosts "${FAULTS_SITE[@]}"
faults chaos --steps "${STEPS:-10000}" --only "${ONLY:-}"
