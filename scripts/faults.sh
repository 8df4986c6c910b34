# shellcheck shell=bash
# What soak, chaos and torture share: programs, services and a directory that is gone afterwards, also
# after a failure. Sourced, not run. PROFILE is the cargo profile to build with, PROGRAMS a directory with programs
# that are built already, SEED the seed of every random choice.
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=scripts/needs.sh
. scripts/needs.sh

HOSTS=()
ENTER=()

# The hosts of two servers and three workers with what they need.
# shellcheck disable=SC2034
FAULTS_SITE=(postgres nats server-1 server-2 worker-1 worker-2 worker-3)

# faults_ground NAME: builds the programs and makes DIRECTORY.
faults_ground() {
  local profile=${PROFILE:-release}
  provide_build_needs
  scripts/services/postgres.sh install
  scripts/services/nats.sh install
  if [ -n "${PROGRAMS:-}" ]; then
    BUILT=$PROGRAMS
  else
    cargo build --locked --profile "$profile" --package noetl-cli --package noetl-bench \
      --bin noetl --bin noetl-faults >&2
    BUILT="$(target_dir)/${profile/#dev/debug}"
  fi
  # Outside the checkout: the user the database runs as may not be able to enter it.
  DIRECTORY="${NOETL_SERVICES_DIR:-${TMPDIR:-/tmp}}/noetl-$1-$$"
  trap faults_end EXIT
  mkdir -p "$DIRECTORY"
  chmod 755 "$DIRECTORY"
}

# faults_hosts HOST..: puts everything on hosts of their own, where this machine can; the caller's is the
# one this script's program runs on. NETWORK=relays leaves them out.
faults_hosts() {
  if [ "${NETWORK:-}" = relays ]; then
    say "  NETWORK=relays: connections are cut by relays, not by network namespaces."
  elif [ "$(id -u)" != 0 ]; then
    unsupported "network namespaces" "run as root" "faults between separate hosts; relays cut connections instead"
  elif ! scripts/services/hosts.sh make "$DIRECTORY" caller "$@"; then
    unsupported "network namespaces" "a kernel that has them" "faults between separate hosts; relays cut connections instead"
  else
    HOSTS=(--hosts)
    ENTER=(ip netns exec "$(basename "$DIRECTORY")-caller")
    # No proxy of this machine leads there.
    export NO_PROXY='*' no_proxy='*'
  fi
}

faults_end() {
  scripts/services/postgres.sh stop "$DIRECTORY/postgres" immediate >/dev/null 2>&1 || true
  if [ ${#HOSTS[@]} -gt 0 ]; then scripts/services/hosts.sh remove "$DIRECTORY" || true; fi
  if mountpoint -q "$DIRECTORY/postgres"; then umount "$DIRECTORY/postgres" || true; fi
  scripts/services/nats.sh remove "$DIRECTORY/nats" >/dev/null 2>&1 || true
  rm -rf "$DIRECTORY"
}

# faults MANNER [option..]: breaks things in this manner.
faults() {
  "${ENTER[@]}" "$BUILT/noetl-faults" --noetl "$BUILT/noetl" --services scripts/services --directory "$DIRECTORY" \
    "${HOSTS[@]}" --seed "${SEED:-$RANDOM}" "$@"
}
