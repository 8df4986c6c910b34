#!/usr/bin/env bash
# Checks what building and testing need. As root on a machine with apt, installs what is missing;
# elsewhere says exactly what to install. Compiles nothing.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=scripts/needs.sh
. scripts/needs.sh

needs python3 python3 "runs python steps"
needs curl curl "asks the running server in the smoke test"
provide_build_needs

for part in fmt clippy; do
  if cargo "$part" --version >/dev/null 2>&1; then continue; fi
  component=${part/fmt/rustfmt}
  if ! has rustup; then
    say "Missing: cargo $part. Install the component $component of your Rust."
    exit 1
  fi
  say "Installing the Rust component $component."
  rustup component add "$component" >&2
done

say "Building with $(rustc --version)."
if has cargo-nextest; then
  say "Testing with $(cargo nextest --version | head -n 1)."
else
  say "Testing with plain cargo test; cargo-nextest would be faster and end hung tests."
fi
has cargo-deny || say "Without cargo-deny; tidy checks licences, sources and bans by itself."

# Nice to have: not worth a wait, and no reason to stop.
if ! has shellcheck && may_install; then
  DEBIAN_FRONTEND=noninteractive timeout 60 \
    apt-get install -y -qq --no-install-recommends shellcheck >/dev/null 2>&1 || true
fi
has shellcheck || say "Without shellcheck; the scripts are checked for syntax only."

# Everything this platform needs, in one go; takes no network when it is all here.
host=$(rustc -vV | sed -n 's/^host: //p')
cargo fetch --locked --quiet --target "$host" || {
  say "Not all crates are on this machine and could not be fetched; the reason is above."
  exit 1
}

# The web UI and the browser that its tests drive.
scripts/test-web.sh install

# Services that tests start; fetching them in a test would take longer than a test may.
if [ "${NOETL_TEST_SERVICES:-}" = off ]; then
  skip "services for tests, because NOETL_TEST_SERVICES=off"
else
  scripts/services/postgres.sh install
  scripts/services/nats.sh install
  # Tests that need these say so and are skipped without them.
  scripts/services/pgbouncer.sh install || say "Without pgbouncer; tests through it are skipped."
  scripts/services/redis.sh install || say "Without redis-server; tests of Redis streams are skipped."
  scripts/services/mosquitto.sh install || say "Without mosquitto; tests of MQTT are skipped."
  scripts/services/kafka.sh install || say "Without kcat; tests with what others write to Kafka are skipped."
  if ! compgen -G '/usr/lib/*/faketime/libfaketimeMT.so.1' >/dev/null; then
    (
      NEEDED_PACKAGES=(faketime)
      NEEDED_TEXTS=("  libfaketime (shows tests another time): install the package faketime")
      provide_needs
    ) || say "Without faketime; tests with wrong clocks are skipped."
  fi
  scripts/fuzz-api.sh install || {
    say "What asks the API everything could not be installed; the reason is above."
    say "With NOETL_TEST_SERVICES=off the tests that need services are left out."
    exit 1
  }
  scripts/services/oidc.sh install || {
    say "The identity provider for tests could not be installed; the reason is above."
    say "With NOETL_TEST_SERVICES=off the tests that need services are left out."
    exit 1
  }
  scripts/services/s3.sh install || {
    say "The S3 server for tests could not be installed; the reason is above."
    say "With NOETL_TEST_SERVICES=off the tests that need services are left out."
    exit 1
  }
fi
