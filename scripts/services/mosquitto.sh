#!/usr/bin/env bash
# Private Mosquitto brokers for tests and for trying things out: own directory, own free port. Nothing
# of the machine's own broker is touched.
#
#   mosquitto.sh start DIR     make DIR if it is missing and start a broker there; prints its URL
#   mosquitto.sh stop DIR      stop it in order, with what it keeps
#   mosquitto.sh remove DIR    end it at once and delete DIR
#   mosquitto.sh install       only see to it that a broker is on this machine
#
# With a file DIR/passwords (mosquitto_passwd) clients have to say who they are.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=scripts/needs.sh
. scripts/needs.sh
# shellcheck source=scripts/services/own.sh
. scripts/services/own.sh

# Where packages put it is in the path of root only.
PATH="$PATH:/usr/sbin"

install() {
  if has mosquitto; then return; fi
  NEEDED_PACKAGES+=(mosquitto)
  NEEDED_TEXTS+=("  mosquitto (the MQTT broker tests subscribe to): install the package mosquitto")
  provide_needs
}

url() { printf 'mqtt://127.0.0.1:%s\n' "$(cat "$1/port")"; }

# Sessions outlive the broker, and no limit of its own drops a message.
launch() {
  local dir=$1
  {
    echo "listener $(cat "$dir/port") 127.0.0.1"
    echo "persistence true"
    echo "persistence_location $dir/"
    echo "max_queued_messages 0"
    if [ -f "$dir/passwords" ]; then
      echo "password_file $dir/passwords"
    else
      echo "allow_anonymous true"
    fi
    # It gives up the rights of root, and then could not write here.
    if [ "$(id -u)" = 0 ]; then echo "user root"; fi
  } >"$dir/mosquitto.conf"
  exec mosquitto -c "$dir/mosquitto.conf"
}

# Ready is who accepts a client: CONNECT of version 3.1.1, answered by CONNACK.
ready() {
  [ -n "$(asked "$(cat "$1/port")" '\x10\x0e\x00\x04MQTT\x04\x02\x00\x0a\x00\x02ok' 4)" ]
}

main "$@"
