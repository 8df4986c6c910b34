#!/usr/bin/env bash
# A private pgbouncer that pools by transaction, for tests: own directory, own free port, a user that
# is not root.
#
#   pgbouncer.sh start DIR URL   make DIR and start a proxy before the server of URL; prints the URL
#                                of the same database through the proxy
#   pgbouncer.sh remove DIR      stop it and delete DIR
#   pgbouncer.sh install         only see to it that pgbouncer is on this machine
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=scripts/needs.sh
. scripts/needs.sh

# Debian puts it where a user's path may not lead.
PATH="$PATH:/usr/sbin"

as_owner() {
  if [ "$(id -u)" = 0 ]; then
    (cd / && setpriv --reuid=postgres --regid=postgres --init-groups -- "$@")
  else
    "$@"
  fi
}

free_port() {
  python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# postgres://user@host:port/database
part() { printf '%s\n' "$2" | sed -E "s|^[a-z]+://([^@]+)@([^:]+):([0-9]+)/(.*)\$|\\$1|"; }

start() {
  local dir=$1 url=$2 user host port name own
  user=$(part 1 "$url") host=$(part 2 "$url") port=$(part 3 "$url") name=$(part 4 "$url")
  mkdir -p "$dir"
  own=$(free_port)
  printf '"%s" ""\n' "$user" >"$dir/users"
  # Few connections to the server, so that many clients share each.
  cat >"$dir/conf" <<CONF
[databases]
* = host=$host port=$port
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
  printf 'postgres://%s@127.0.0.1:%s/%s\n' "$user" "$own" "$name"
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
  remove) remove "$2" ;;
  *)
    sed -n '2,/^set /p' "$0" | grep '^#' | cut -c 3- >&2
    exit 2
    ;;
esac
