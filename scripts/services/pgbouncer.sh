#!/usr/bin/env bash
# A private pgbouncer that pools by transaction, for tests: own directory, own free port, a user that
# is not root.
#
#   pgbouncer.sh start DIR URL   make DIR and start a proxy before the server of URL; prints the URL
#                                of the same database through the proxy
#   pgbouncer.sh shared URL      the same for the one that tests share, which is started if it is not
#                                running; it serves every database of that server
#   pgbouncer.sh remove DIR      stop it and delete DIR
#   pgbouncer.sh remove-shared   the same for the shared one
#   pgbouncer.sh install         only see to it that pgbouncer is on this machine
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=scripts/needs.sh
. scripts/needs.sh

# Debian puts it where a user's path may not lead.
PATH="$PATH:/usr/sbin"

BASE=${NOETL_SERVICES_DIR:-${TMPDIR:-/tmp}}
SHARED="$BASE/noetl-pgbouncer-$(pwd | cksum | cut -d ' ' -f 1)"

as_owner() {
  if [ "$(id -u)" = 0 ]; then
    (cd / && setpriv --reuid=postgres --regid=postgres --init-groups -- "$@")
  else
    "$@"
  fi
}

# postgres://user@host:port/database
part() { printf '%s\n' "$2" | sed -E "s|^[a-z]+://([^@]+)@([^:]+):([0-9]+)/(.*)\$|\\$1|"; }

start() {
  local dir=$1 url=$2 own
  mkdir -p "$dir"
  own=$(free_port)
  printf '"%s" ""\n' "$(part 1 "$url")" >"$dir/users"
  # Few connections to the server, so that many clients share each.
  cat >"$dir/conf" <<CONF
[databases]
* = host=$(part 2 "$url") port=$(part 3 "$url")
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = $own
unix_socket_dir =
auth_type = trust
auth_file = $dir/users
pool_mode = transaction
default_pool_size = 4
max_client_conn = 1000
logfile = $dir/log
pidfile = $dir/pid
CONF
  if [ "$(id -u)" = 0 ]; then chown -R postgres "$dir"; fi
  as_owner "$(command -v pgbouncer)" -d -q "$dir/conf" >&2
  printf '%s\n' "$own" >"$dir/port"
  for _ in $(seq 100); do
    if listens "$dir"; then break; fi
    sleep 0.1
  done
  through "$dir" "$url"
}

through() {
  printf 'postgres://%s@127.0.0.1:%s/%s\n' "$(part 1 "$2")" "$(cat "$1/port")" "$(part 4 "$2")"
}

# Whether somebody listens where the one in this directory is said to.
listens() { (exec 3<>"/dev/tcp/127.0.0.1/$(cat "$1/port")") 2>/dev/null; }

# Whether the one in this directory runs, before the server of this URL. Its number alone may be that of
# another process by now.
running() {
  [ -f "$1/pid" ] && [ -f "$1/port" ] && kill -0 "$(cat "$1/pid")" 2>/dev/null && listens "$1" \
    && grep -qx "\* = host=$(part 2 "$2") port=$(part 3 "$2")" "$1/conf"
}

shared() {
  if running "$SHARED" "$1"; then
    through "$SHARED" "$1"
  else
    remove "$SHARED"
    start "$SHARED" "$1"
  fi
}

remove() {
  local pid
  if [ -f "$1/pid" ]; then
    pid=$(cat "$1/pid")
    kill -INT "$pid" 2>/dev/null || true
  fi
  rm -rf "$1"
}

case ${1:-} in
  install)
    needs pgbouncer pgbouncer "the proxy the tests use"
    provide_needs
    ;;
  start) start "$2" "$3" ;;
  shared)
    exec 9>"$SHARED.lock"
    flock 9
    shared "$2" 9>&-
    ;;
  remove) remove "$2" ;;
  remove-shared) remove "$SHARED" ;;
  *)
    sed -n '2,/^set /p' "$0" | grep '^#' | cut -c 3- >&2
    exit 2
    ;;
esac
