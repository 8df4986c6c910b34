#!/usr/bin/env bash
# Everything that can be said about the code without running it. Cheap stages come first.
# Run by itself, or sourced by test.sh so that its stages appear in the same summary.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

verify_scripts() {
  local scripts=(.ci/run scripts/*.sh scripts/services/*.sh)
  local script
  for script in "${scripts[@]}"; do bash -n "$script"; done
  if has shellcheck; then
    shellcheck --external-sources "${scripts[@]}"
  else
    skip "shellcheck is not installed"
  fi
}

verify_docs() {
  RUSTDOCFLAGS="${RUSTDOCFLAGS:-} -D warnings" cargo doc --locked --workspace --no-deps --quiet
}

[ "${BASH_SOURCE[0]}" = "$0" ] && trap summary EXIT

stage "format" cargo fmt --all --check
stage "scripts" verify_scripts
stage "tidy" cargo run --locked --quiet --package xtask -- tidy
stage "dependencies" scripts/deny.sh
stage "clippy" cargo clippy --locked --workspace --all-targets --quiet -- -D warnings
stage "docs" verify_docs
