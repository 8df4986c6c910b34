#!/usr/bin/env bash
# Checks the code without running it. Cheap stages come first.
# Run by itself, or sourced by test.sh so that its stages appear in the same summary.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

verify_scripts() {
  local scripts=(.ci/run .githooks/* scripts/*.sh scripts/services/*.sh scripts/published/library/*)
  local script
  for script in "${scripts[@]}"; do bash -n "$script"; done
  if has shellcheck; then
    shellcheck --external-sources "${scripts[@]}"
  else
    skip shellcheck "apt-get install shellcheck" "the check of the scripts"
  fi
  python3 -m unittest discover -q -s bench/report
  python3 -m unittest discover -q -s scripts/published
}

# Files that a script derives from the code and that are committed.
verify_generated() {
  if ! has node; then
    skip node "install Node 20.19 or newer" "the check of the editor's word list"
    return
  fi
  npm --prefix web run --silent words
  git diff --exit-code web/src/pages/editor/words.json >&2 || {
    say "The editor's word list is out of date. Commit what 'npm --prefix web run words' wrote."
    return 1
  }
}

# Crates are checked once for clippy and the documentation: by the same driver, with the same
# arguments, and with the features that tests switch on.
verify_docs() {
  RUSTC_WORKSPACE_WRAPPER="$(rustc --print sysroot)/bin/clippy-driver" \
    CLIPPY_ARGS="-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__" \
    RUSTDOCFLAGS="${RUSTDOCFLAGS:-} -D warnings" \
    cargo doc --locked --workspace --no-deps --quiet \
    --features noetl-bus/conformance,noetl-test-services/nats,noetl-test-services/otlp
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
  NOETL_TEST_SKIPS_FILE=$(mktemp)
  export NOETL_TEST_SKIPS_FILE
  trap 'summary; rm -f "$NOETL_TEST_SKIPS_FILE"' EXIT
  fi

stage "format" cargo fmt --all --check
stage "scripts" verify_scripts
stage "generated files" verify_generated
stage "tidy" cargo run --locked --quiet --package xtask -- tidy
stage "dependencies" scripts/deny.sh
stage "clippy" cargo clippy --locked --workspace --all-targets --quiet -- -D warnings
stage "docs" verify_docs
