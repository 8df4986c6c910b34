#!/usr/bin/env bash
# Lists what the release program is made of, as CycloneDX 1.5 JSON: every crate that ends up in it, from Cargo.lock, and every
# package that the web UI is built from, from its package-lock.json. The same sources give the same bytes.
#
#   scripts/sbom.sh [file, target/noetl.cdx.json unless said]
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

to=${1:-$(target_dir)/noetl.cdx.json}
mkdir -p "$(dirname "$to")"
metadata=$(mktemp)
trap 'rm -f "$metadata"' EXIT
host=$(rustc -vV | sed -n 's/^host: //p')
cargo metadata --locked --format-version 1 --filter-platform "$host" >"$metadata"
python3 scripts/sbom.py "$metadata" Cargo.lock web/package-lock.json "$to"
