#!/usr/bin/env bash
# Runs cargo-deny as far as this machine allows, and says what it had to leave out.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

# The first release that reads deny.toml as it is written. Older ones stop at its licence names or
# at what today's cargo tells them.
oldest=0.16.2

if ! has cargo-deny; then
  skip "cargo-deny is not installed"
  exit 0
fi
version=$(cargo-deny --version | awk '{print $2}')
if [ "$(printf '%s\n' "$oldest" "$version" | sort -V | head -n 1)" != "$oldest" ]; then
  skip "cargo-deny $version is older than $oldest"
  exit 0
fi
# It looks at every platform's crates; a build fetches those of this platform only.
if ! cargo fetch --locked --quiet 2>/dev/null; then
  skip "not all crates are on this machine, and the registry does not answer"
  exit 0
fi

checks=(bans licenses sources)
# What is known by now, where the network lets it through; otherwise what was known when it last did. A fetch
# that failed leaves a lock behind, so it is a directory that counts.
timeout 60 cargo-deny --log-level off fetch db >/dev/null 2>&1 || true
if [ -n "$(find "${CARGO_HOME:-$HOME/.cargo}/advisory-dbs" -mindepth 1 -maxdepth 1 -type d 2>/dev/null)" ]; then
  checks+=(advisories)
else
  skip "advisories, because their database is neither on this machine nor to be fetched"
fi
cargo-deny --offline --log-level error check "${checks[@]}"
