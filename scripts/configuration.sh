#!/usr/bin/env bash
# Writes docs/guide/configuration.md from the declarations in crates/noetl-config. A test of that
# crate compares the two.
set -euo pipefail
cd "$(dirname "$0")/.."
page=$(mktemp)
trap 'rm -f "$page"' EXIT
cargo run --quiet --package noetl-config --example reference > "$page"
cp "$page" docs/guide/configuration.md
