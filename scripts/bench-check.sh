#!/usr/bin/env bash
# Measures in small and compares ratios with the committed ones. With `--write` they become the committed
# ones.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=scripts/needs.sh
. scripts/needs.sh

provide_build_needs
build_bench
lines=$(mktemp)
trap 'rm -f "$lines"' EXIT
bench() { "$(target_dir)/release/noetl-bench" --steps 50000 --long 20000 --replay 200000 "$@" >>"$lines"; }
for store in memory sqlite; do
  for only in cycle fan_out; do bench --store "$store" --only "$only"; done
done
for store in sqlite postgres; do
  for only in chain_100 journal list_50; do bench --store "$store" --only "$only"; done
done
bench --store sqlite --only replay
python3 bench/check.py bench/ratios.json "$lines" "$@"
