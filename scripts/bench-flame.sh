#!/usr/bin/env bash
# Draws where the time of a measurement goes, as docs/images/flame-STORE.svg: chains of a hundred
# executions at a time on memory and SQLite, or on the stores that are named.
#
#   bench-flame.sh [store..]
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=scripts/needs.sh
. scripts/needs.sh

needs perf linux-perf "samples where time goes"
provide_build_needs
build_bench
samples=$(mktemp)
trap 'rm -f "$samples"' EXIT
if [ $# = 0 ]; then set -- memory sqlite; fi
for store in "$@"; do
  # By the processor's clock, which virtual machines have too. Optimised programs keep no frame pointers, so
  # stacks are found by what the debugger knows, which costs: few samples a second.
  perf record --quiet --output "$samples" -e cpu-clock -F 299 --call-graph dwarf,16384 -- \
    "$(target_dir)/release/noetl-bench" --only chain_100 --steps 60000 --store "$store" >&2
  perf script --no-inline -F comm,ip,sym -i "$samples" 2>/dev/null |
    python3 bench/report/flame.py "chain_100 and chain_1000 on $store" >"docs/images/flame-$store.svg"
  say "docs/images/flame-$store.svg"
done
