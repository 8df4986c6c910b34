#!/usr/bin/env bash
# Runs the tests of the routes on another store than memory: scripts/test-routes.sh sqlite|postgres [MODULE...]
# A route's response may not depend on the store. Without a module, runs all of them.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=scripts/lanes.sh
. scripts/lanes.sh

lane_routes "$@"
