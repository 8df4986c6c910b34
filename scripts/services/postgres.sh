#!/usr/bin/env bash
# Private Postgres servers for tests and benchmarks: own data directory, own free port, a user that
# is not root. Nothing of the machine's own Postgres is touched.
#
#   postgres.sh shared              start the one that tests share, if it is not running; prints its URL
#   postgres.sh start DIR [conf..]  make DIR if it is missing and start a server there; prints its URL
#   postgres.sh stop DIR [mode]     stop it; mode is smart, fast (default) or immediate
#   postgres.sh remove DIR          stop it at once and delete DIR
#   postgres.sh remove-shared       the same for the shared one
#   postgres.sh install             only see to it that Postgres is on this machine
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=scripts/needs.sh
. scripts/needs.sh

# Data directories are outside the checkout: the user they belong to may not be able to enter it.
BASE=${NOETL_SERVICES_DIR:-${TMPDIR:-/tmp}}
# One that is to be reached from elsewhere is told at which address.
ADDRESS=${NOETL_SERVICES_ADDRESS:-127.0.0.1}
SHARED="$BASE/noetl-postgres-$(pwd | cksum | cut -d ' ' -f 1)"

bin_dir() {
  local found
  found=$(find /usr/lib/postgresql -maxdepth 2 -name bin 2>/dev/null | sort -V | tail -n 1)
  if [ -z "$found" ] && has pg_config; then found=$(pg_config --bindir); fi
  if [ -n "$found" ] && [ -x "$found/initdb" ]; then printf '%s\n' "$found"; fi
}

install() {
  if [ -z "$(bin_dir)" ]; then
    NEEDED_PACKAGES+=(postgresql)
    NEEDED_TEXTS+=("  initdb and postgres (the database the tests use): install the package postgresql")
    provide_needs
  fi
}

# Postgres refuses to run as root.
as_owner() {
  if [ "$(id -u)" = 0 ]; then
    (cd / && setpriv --reuid=postgres --regid=postgres --init-groups -- "$@")
  else
    "$@"
  fi
}

running() { as_owner "$BIN/pg_ctl" status -D "$1/data" >/dev/null 2>&1; }

url() { printf 'postgres://noetl@%s:%s/postgres\n' "$ADDRESS" "$(cat "$1/port")"; }

start() {
  local dir=$1 options="" tries
  shift
  if running "$dir"; then
    url "$dir"
    return
  fi
  if [ ! -d "$dir/data" ]; then
    mkdir -p "$dir"
    if [ "$(id -u)" = 0 ]; then chown postgres "$dir"; fi
    as_owner "$BIN/initdb" -D "$dir/data" -U noetl --auth=trust -E UTF8 --locale=C.UTF-8 \
      --no-sync >/dev/null
    if [ "$ADDRESS" != 127.0.0.1 ]; then
      echo "host all all ${ADDRESS%.*}.0/24 trust" >>"$dir/data/pg_hba.conf"
    fi
  fi
  if [ ! -f "$dir/port" ]; then free_port >"$dir/port"; fi
  for option in "$@"; do options="$options -c $option"; done
  for tries in 1 2 3 4 5; do
    if as_owner "$BIN/pg_ctl" start -w -s -D "$dir/data" -l "$dir/log" -o "-p $(cat "$dir/port") \
        -c listen_addresses=$ADDRESS -c unix_socket_directories=$dir -c max_connections=300 \
        -c shared_buffers=128MB -c jit=off $options" >/dev/null 2>&1; then
      url "$dir"
      return
    fi
    # Somebody else may have taken the port since it was found free.
    say "Postgres did not start (try $tries); another port is tried."
    free_port >"$dir/port"
  done
  tail -n 20 "$dir/log" >&2
  exit 1
}

stop() {
  if running "$1"; then
    as_owner "$BIN/pg_ctl" stop -w -s -D "$1/data" -m "${2:-fast}" >/dev/null
  fi
}

remove() {
  stop "$1" immediate || true
  rm -rf "$1"
}

install
BIN=$(bin_dir)
case ${1:-} in
  install) ;;
  shared)
    # One starts it, the others wait for that.
    exec 9>"$SHARED.lock"
    flock 9
    # What tests keep need not survive the machine.
    start "$SHARED" fsync=off full_page_writes=off 9>&-
    ;;
  start) start "${@:2}" ;;
  stop) stop "$2" "${3:-fast}" ;;
  remove) remove "$2" ;;
  remove-shared) remove "$SHARED" ;;
  *)
    sed -n '2,/^set /p' "$0" | grep '^#' | cut -c 3- >&2
    exit 2
    ;;
esac
