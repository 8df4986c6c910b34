#!/usr/bin/env bash
# Checks the crates that changed since the merge base, for use every few minutes: format, clippy, and their unit
# tests. Compares with BASE (default: origin's main branch, else main, else the last commit).
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

# The newest commit that this work shares with the main branch. On the main branch itself, that is the last commit.
merge_base() {
  local ref
  for ref in ${BASE:-} origin/HEAD origin/main main; do
    if git rev-parse --verify --quiet "$ref^{commit}" >/dev/null; then
      git merge-base HEAD "$ref"
      return
    fi
  done
  git rev-parse HEAD
}

changed_files() {
  git diff --name-only "$(merge_base)"
  git ls-files --others --exclude-standard
}

# Prints the packages of changed files, or --workspace when a file concerns all of them.
changed_packages() {
  local file crate
  changed_files | sort -u | while read -r file; do
    case $file in
      crates/*/*)
        crate=$(cut -d / -f 2 <<<"$file")
        # A deleted crate has nothing to check.
        if [ -f "crates/$crate/Cargo.toml" ]; then echo "$crate"; fi
        ;;
      bench/*.rs | bench/Cargo.toml) echo noetl-bench ;;
      xtask/*) echo xtask ;;
      Cargo.toml | Cargo.lock | clippy.toml | rustfmt.toml | rust-toolchain.toml | .cargo/*) echo --workspace ;;
    esac
  done | sort -u
}

run_checks() {
  local selection=() package
  for package in "$@"; do
    if [ "$package" = --workspace ]; then
      selection=(--workspace)
      break
    fi
    selection+=(--package "$package")
  done
  stage "clippy" cargo clippy --locked "${selection[@]}" --all-targets --quiet -- -D warnings
  # Unit tests only: integration tests link much more and belong to `make test-one` and `make test`.
  stage "unit tests" cargo nextest run --locked "${selection[@]}" --lib --bins --no-tests pass --status-level fail
}

trap summary EXIT
stage "format" cargo fmt --all --check
mapfile -t packages < <(changed_packages)
if [ ${#packages[@]} = 0 ]; then
  say "No crate changed since $(merge_base | cut -c 1-12)."
else
  say "Changed: ${packages[*]}"
  run_checks "${packages[@]}"
fi
if git diff --quiet "$(merge_base)" -- web; then :; elif [ -d web/node_modules ]; then
  stage "types of the web UI" npm --prefix web run --silent check
fi
