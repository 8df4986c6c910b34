#!/usr/bin/env bash
# Private Redis servers for tests and for trying things out: own directory, own free port. Nothing of
# the machine's own Redis is touched.
#
#   redis.sh start DIR [option..]  make DIR if it is missing and start a server there; prints its URL
#   redis.sh stop DIR              stop it in order, with what it keeps
#   redis.sh remove DIR            end it at once and delete DIR
#   redis.sh install               only see to it that a server is on this machine
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=scripts/needs.sh
. scripts/needs.sh
# shellcheck source=scripts/services/own.sh
. scripts/services/own.sh

install() {
  if has redis-server; then return; fi
  NEEDED_PACKAGES+=(redis-server)
  NEEDED_TEXTS+=("  redis-server (streams that tests subscribe to): install the package redis-server")
  provide_needs
}

url() { printf 'redis://127.0.0.1:%s\n' "$(cat "$1/port")"; }

# Everything is written to the file before it is answered, so that a stop at any moment loses nothing.
launch() {
  local dir=$1
  shift
  exec redis-server --bind 127.0.0.1 --port "$(cat "$dir/port")" --dir "$dir" --daemonize no \
    --appendonly yes --appendfsync always --save '' "$@"
}

# Ready is who answers: a server that only listens may still be reading what it keeps.
ready() { [ "$(asked "$(cat "$1/port")" 'PING\r\n' 7)" = '+PONG' ]; }

main "$@"
