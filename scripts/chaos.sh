#!/usr/bin/env bash
# Two servers, three workers, a database and a bus of their own under work, and each broken in each way,
# one after the other; then every log is verified. Exits with 1 when anything is wrong. A line per fault
# on stderr, one JSON line on stdout.
#
#   STEPS=500 ONLY=NATS PROFILE=dev scripts/chaos.sh
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=scripts/needs.sh
. scripts/needs.sh

profile=${PROFILE:-release}
provide_build_needs
scripts/services/postgres.sh install
scripts/services/nats.sh install
cargo build --locked --profile "$profile" --package noetl-cli --package noetl-bench \
  --bin noetl --bin noetl-chaos >&2
built="$(target_dir)/${profile/#dev/debug}"
# Outside the checkout: the user the database runs as may not be able to enter it.
directory="${NOETL_SERVICES_DIR:-${TMPDIR:-/tmp}}/noetl-chaos-$$"
mkdir -p "$directory"
chmod 755 "$directory"
finish() {
  scripts/services/postgres.sh remove "$directory/postgres" >/dev/null 2>&1 || true
  scripts/services/nats.sh remove "$directory/nats" >/dev/null 2>&1 || true
  rm -rf "$directory"
}
trap finish EXIT
"$built/noetl-chaos" --noetl "$built/noetl" --services scripts/services --directory "$directory" \
  --steps "${STEPS:-10000}" --only "${ONLY:-}" --seed "${SEED:-$RANDOM}"
