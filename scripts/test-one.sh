#!/usr/bin/env bash
# Runs every test of one crate, both lanes: scripts/test-one.sh CRATE [nextest option..]
# Without the prefix noetl- too: scripts/test-one.sh engine
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

crate=${1:-}
if [ ! -f "crates/$crate/Cargo.toml" ] && [ -f "crates/noetl-$crate/Cargo.toml" ]; then crate=noetl-$crate; fi
if [ -z "$crate" ] || [ ! -f "crates/$crate/Cargo.toml" ]; then
  say "No crate '$crate'. The crates are:"
  for manifest in crates/*/Cargo.toml; do say "  $(basename "$(dirname "$manifest")")"; done
  exit 2
fi
shift
cargo nextest run --locked --package "$crate" "$@"
