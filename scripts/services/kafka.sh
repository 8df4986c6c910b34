#!/usr/bin/env bash
# A Kafka cluster for tests: the stand-in for one that librdkafka has, run by kcat (Debian has no broker). Three
# brokers, topics with four partitions each that are made when somebody writes to them, kept in
# memory: what it had is gone when it stops.
#
#   kafka.sh start DIR     make DIR if it is missing and start a cluster there; prints its brokers
#   kafka.sh stop DIR      stop it
#   kafka.sh remove DIR    end it at once and delete DIR
#   kafka.sh install       only see to it that kcat is on this machine
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=scripts/needs.sh
. scripts/needs.sh
# shellcheck source=scripts/services/own.sh
. scripts/services/own.sh

install() {
  if has kcat; then return; fi
  NEEDED_PACKAGES+=(kcat)
  NEEDED_TEXTS+=("  kcat (speaks Kafka in tests): install the package kcat")
  provide_needs
}

# It chooses its ports itself, and says which.
url() { sed -n 's/.*Mock cluster .* bootstrap.servers=//p' "$1/log" | tail -n 1; }

# It lives as long as its input, which here has no end. It would write to a topic that nobody reads.
launch() {
  local dir=$1
  if [ ! -p "$dir/in" ]; then mkfifo "$dir/in"; fi
  exec kcat -P -t none -b stand-in -X test.mock.num.brokers=3 -d mock <>"$dir/in"
}

ready() { [ -n "$(url "$1")" ]; }

main "$@"
