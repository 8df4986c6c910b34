#!/usr/bin/env bash
# Two servers and a database of their own under load, killed at random for MINUTES (default 10); then
# every log is verified. Exits with 1 when anything is wrong. Stdout holds one JSON line.
#
#   MINUTES=2 SEED=7 PROFILE=dev scripts/soak.sh
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=scripts/needs.sh
. scripts/needs.sh

profile=${PROFILE:-release}
provide_build_needs
scripts/services/postgres.sh install
cargo build --locked --profile "$profile" --package noetl-cli --package noetl-bench >&2
built="$(target_dir)/${profile/#dev/debug}"
# Outside the checkout: the user the database runs as may not be able to enter it.
directory="${NOETL_SERVICES_DIR:-${TMPDIR:-/tmp}}/noetl-soak-$$"
trap 'scripts/services/postgres.sh remove "$directory"' EXIT
"$built/noetl-soak" --noetl "$built/noetl" --service scripts/services/postgres.sh \
  --directory "$directory" --minutes "${MINUTES:-10}" --seed "${SEED:-$RANDOM}"
