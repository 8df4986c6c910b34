#!/usr/bin/env bash
# Checks what building and testing need. As root on a machine with apt, installs what is missing;
# elsewhere says exactly what to install. Compiles nothing.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

wanted=()   # packages without which nothing works
missing=()  # what to tell the user about them

need() { # need <command> <package> <what for>
  if has "$1"; then return; fi
  wanted+=("$2")
  missing+=("  $1 ($3): install the package $2")
}

need cc gcc "compiles the embedded database"
need python3 python3 "runs python steps"
need curl curl "asks the running server in the smoke test"

if [ ${#wanted[@]} -gt 0 ]; then
  if [ "$(id -u)" = 0 ] && has apt-get; then
    say "Installing ${wanted[*]} with apt."
    # gcc alone brings no C library headers.
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq || say "  apt could not update its lists; trying with those it has"
    apt-get install -y -qq --no-install-recommends "${wanted[@]}" libc6-dev >&2
  else
    say "Missing, and this script may not install it here:"
    printf '%s\n' "${missing[@]}" >&2
    exit 1
  fi
fi

if ! has cargo; then
  say "Missing: cargo. Install Rust with the installer at https://rustup.rs, then try again."
  exit 1
fi

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
if ! has shellcheck && [ "$(id -u)" = 0 ] && has apt-get; then
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
