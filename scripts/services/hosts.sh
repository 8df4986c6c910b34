#!/usr/bin/env bash
# Hosts of a test's own on this machine: network namespaces that reach each other through one more, the
# hub, and nothing else. What goes between two of them can be dropped without either being told. Takes
# root and iproute2; nothing of the machine's own network is touched.
#
#   hosts.sh make DIR HOST..      make them; DIR/hosts has a line for each: its name, its address
#   hosts.sh cut DIR HOST OTHER.. drop what goes between the first and each other
#   hosts.sh mend DIR HOST OTHER.. let it pass again
#   hosts.sh spoil DIR HOST..     lose and delay what goes to each, where the kernel has netem
#   hosts.sh clear DIR HOST..     no longer
#   hosts.sh remove DIR           end what runs in them, and remove them
#   hosts.sh install              only see to it that `ip` is on this machine
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=scripts/needs.sh
. scripts/needs.sh

# Addresses that are known inside the namespaces alone; the first is the hub's.
NET=10.231.0
# What is lost and how late the rest is: enough that every connection meets it, and few enough that
# connections still carry something.
SPOILED=(loss 10% delay 40ms 20ms)

install() {
  needs ip iproute2 "puts processes on hosts of their own"
  provide_needs
}

namespace() { printf '%s-%s\n' "$(basename "$DIR")" "$1"; }

# Its address ends with its number, and so does the name of its port at the hub.
address() {
  awk -v host="$1" '$1 == host { print $2; found = 1 } END { exit !found }' "$DIR/hosts" ||
    { say "No host is called $1."; exit 2; }
}

port() { printf 'port%s\n' "${1##*.}"; }

in_hub() { ip netns exec "$(namespace hub)" "$@"; }

make() {
  local host space number=1
  trap remove EXIT
  ip netns add "$(namespace hub)"
  in_hub sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
  : >"$DIR/hosts"
  for host in "$@"; do
    number=$((number + 1))
    space=$(namespace "$host")
    ip netns add "$space"
    ip -n "$space" link add name wire type veth peer name "port$number" netns "$(namespace hub)"
    in_hub ip address add "$NET.1" peer "$NET.$number" dev "port$number"
    in_hub ip link set dev "port$number" up
    ip -n "$space" address add "$NET.$number" peer "$NET.1" dev wire
    ip -n "$space" link set dev lo up
    ip -n "$space" link set dev wire up
    ip -n "$space" route add default via "$NET.1"
    echo "$host $NET.$number" >>"$DIR/hosts"
  done
  trap - EXIT
}

# Dropped where it is forwarded: who sends into a rule of its own host would be told.
rule() { in_hub ip rule "$1" blackhole from "$2" to "$3" 2>/dev/null; }

cut_one() {
  # Cut twice is cut once.
  mend_one "$1" "$2"
  rule add "$1" "$2"
  rule add "$2" "$1"
}

mend_one() {
  while rule del "$1" "$2"; do :; done
  while rule del "$2" "$1"; do :; done
}

# each_other COMMAND HOST OTHER..
each_other() {
  local first other
  first=$(address "$2")
  for other in "${@:3}"; do "$1" "$first" "$(address "$other")"; done
}

spoil() {
  local host
  for host in "$@"; do
    in_hub tc qdisc replace dev "$(port "$(address "$host")")" root netem "${SPOILED[@]}"
  done
}

clear() {
  local host
  for host in "$@"; do
    in_hub tc qdisc del dev "$(port "$(address "$host")")" root || true
  done
}

remove() {
  local space
  for space in $(ip netns list | awk -v name="$(basename "$DIR")-" 'index($1, name) == 1 { print $1 }'); do
    # shellcheck disable=SC2046
    kill -s KILL $(ip netns pids "$space") 2>/dev/null || true
    ip netns delete "$space"
  done
  rm -f "$DIR/hosts"
}

install
DIR=${2:-}
case ${1:-} in
  install) ;;
  make) make "${@:3}" ;;
  cut) each_other cut_one "${@:3}" ;;
  mend) each_other mend_one "${@:3}" ;;
  spoil) spoil "${@:3}" ;;
  clear) clear "${@:3}" ;;
  remove) remove ;;
  *)
    sed -n '2,/^set /p' "$0" | grep '^#' | cut -c 3- >&2
    exit 2
    ;;
esac
