#!/usr/bin/env bash
# Two servers, three workers, a database and a bus of their own under load for MINUTES, everything broken
# at random, often two things at once; then every log is verified, and what callers were told has to fit
# one order per execution. Exits with 1 when anything is wrong. One JSON line on stdout, words on stderr.
#
# As root the database is on a small disk of its own, which is filled now and then; else that is skipped.
#
#   MINUTES=10 SEED=7 PROFILE=dev scripts/torture.sh
set -euo pipefail
# shellcheck source=scripts/faults.sh
. "$(dirname "$0")/faults.sh"

faults_ground torture
faults_hosts "${FAULTS_SITE[@]}"
disk=()
mkdir "$DIRECTORY/postgres"
minutes=${MINUTES:-60}
# Nothing is purged, so that everything can be verified: a minute of work takes some 40 MB. The disk is in
# memory, and is filled to its end now and then.
disk_mb=${DISK_MB:-$((1024 + 80 * ${minutes%.*}))}
free_mb=$(awk '/^MemAvailable:/ { print int($2 / 1024) }' /proc/meminfo)
if [ "$(id -u)" = 0 ] && [ "$((disk_mb * 3 / 2))" -lt "$free_mb" ] &&
  mount -t tmpfs -o size="${disk_mb}m" tmpfs "$DIRECTORY/postgres" 2>/dev/null; then
  chown postgres "$DIRECTORY/postgres"
  disk=(--disk "$DIRECTORY/postgres")
fi
faults torture "${disk[@]}" --minutes "$minutes"
