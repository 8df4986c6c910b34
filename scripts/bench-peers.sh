#!/usr/bin/env bash
# Measures this program and its peers in one run: chains, fan-outs, and calls on the same disk. Stdout
# holds JSON lines and nothing else. What cannot be installed is left out and said so.
#
#   bench-peers.sh [--only NAME] [--seconds N] [--install]
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=scripts/needs.sh
. scripts/needs.sh

provide_build_needs
build_bench
python3 bench/peers/run.py --install "$@" >&2
case " $* " in *" --install "*) exit ;; esac
for store in sqlite postgres; do
  for only in chain_1 fan_out calls; do
    "$(target_dir)/release/noetl-bench" --store "$store" --only "$only"
  done
done
"$(target_dir)/release/noetl-bench" --store postgres --only steps_
exec python3 bench/peers/run.py "$@"
