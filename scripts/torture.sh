#!/usr/bin/env bash
# Two servers, three workers, a database and a bus of their own under load for MINUTES, everything broken
# at random, often two things at once; then every log is verified, and what callers were told has to fit
# one order per execution. Exits with 1 when anything is wrong. One JSON line on stdout, words on stderr.
#
# As root the database is on a small disk of its own, which is filled now and then; else that is skipped.
#
#   MINUTES=10 SEED=7 PROFILE=dev scripts/torture.sh
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
  --bin noetl --bin noetl-torture >&2
built="$(target_dir)/${profile/#dev/debug}"
# Outside the checkout: the user the database runs as may not be able to enter it.
directory="${NOETL_SERVICES_DIR:-${TMPDIR:-/tmp}}/noetl-torture-$$"
mkdir -p "$directory/postgres"
chmod 755 "$directory"
disk=()
if [ "$(id -u)" = 0 ] && mount -t tmpfs -o size="${DISK_MB:-1024}m" tmpfs "$directory/postgres" 2>/dev/null; then
  chown postgres "$directory/postgres"
  disk=(--disk "$directory/postgres")
fi
finish() {
  scripts/services/postgres.sh stop "$directory/postgres" immediate >/dev/null 2>&1 || true
  if [ ${#disk[@]} -gt 0 ]; then umount "$directory/postgres" || true; fi
  scripts/services/nats.sh remove "$directory/nats" >/dev/null 2>&1 || true
  rm -rf "$directory"
}
trap finish EXIT
"$built/noetl-torture" --noetl "$built/noetl" --services scripts/services --directory "$directory" \
  "${disk[@]}" --minutes "${MINUTES:-60}" --seed "${SEED:-$RANDOM}"
