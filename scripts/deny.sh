#!/usr/bin/env bash
# Checks licenses, bans, sources, and, where their database is at hand, advisories with cargo-deny. The database is
# ../shared/advisory-db.tar.gz if that exists, otherwise the one that cargo-deny fetches.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

# The first release that reads deny.toml as it is written. Older ones stop at its license names or
# at the metadata of current cargo.
oldest=0.16.2
install="cargo install --locked cargo-deny"

if ! has cargo-deny; then
  skip cargo-deny "$install" "licenses, bans, sources, and advisories of dependencies"
  exit 0
fi
version=$(cargo-deny --version | awk '{print $2}')
if [ "$(printf '%s\n' "$oldest" "$version" | sort -V | head -n 1)" != "$oldest" ]; then
  skip "cargo-deny $oldest" "$install" "licenses, bans, sources, and advisories of dependencies"
  exit 0
fi
# It reads the crates of every platform; a build fetches those of this platform only.
cargo fetch --locked --quiet || lacking "Could not fetch the crates of all platforms; the reason is above."

checks=(bans licenses sources)
config=deny.toml
# Advisories come from an archive beside the checkout where there is one. cargo-deny reads databases as git
# repositories under a name of its own, so the archive becomes one; it is made again when the archive is newer.
archive=../shared/advisory-db.tar.gz
if [ -f "$archive" ] && has git; then
  databases=$PWD/target/advisory-db
  # The name that cargo-deny gives to https://github.com/RustSec/advisory-db.
  database=$databases/advisory-db-3157b0e258782691
  if [ ! "$database/.git/complete" -nt "$archive" ]; then
    rm -rf "$database"
    mkdir -p "$database"
    tar -xzf "$archive" -C "$database"
    git -C "$database" init --quiet
    git -C "$database" add --all
    git -C "$database" -c user.name=noetl -c user.email=noetl@localhost -c commit.gpgsign=false \
      commit --quiet --message "Advisories of $(date -u -r "$archive" +%F)"
    touch "$database/.git/complete"
  fi
  config=$databases/deny.toml
  sed "s|^\[advisories\]\$|&\ndb-path = \"$databases\"|" deny.toml >"$config"
  checks+=(advisories)
else
  # The current database where the network allows it, otherwise the one fetched last. A failed fetch leaves a
  # lock file behind, so only a directory counts.
  timeout 60 cargo-deny --log-level off fetch db >/dev/null 2>&1 || true
  if [ -n "$(find "${CARGO_HOME:-$HOME/.cargo}/advisory-dbs" -mindepth 1 -maxdepth 1 -type d 2>/dev/null)" ]; then
    checks+=(advisories)
  else
    unsupported "RustSec database" "cargo deny fetch db, with a network" "advisories of dependencies"
  fi
fi
cargo-deny --offline --log-level error --config "$config" check "${checks[@]}"
