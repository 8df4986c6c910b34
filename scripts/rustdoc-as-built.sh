#!/usr/bin/env bash
# Takes the place of rustdoc in `cargo test --doc`: checks the documentation of a crate instead of running its
# examples. `cargo test --doc` passes the libraries that `cargo build` has left, where `cargo doc` would check every
# dependency again, which takes minutes in a fresh clone.
set -euo pipefail

arguments=() is_test=
while [ $# -gt 0 ]; do
  case $1 in
    --test) is_test=1 ;;
    # The directory in which examples would run.
    --test-run-directory) shift ;;
    *) arguments+=("$1") ;;
  esac
  shift
done

rustdoc=$(rustc --print sysroot)/bin/rustdoc
# Cargo also asks for the version.
if [ -z "$is_test" ]; then exec "$rustdoc" "${arguments[@]}"; fi
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
"$rustdoc" "${arguments[@]}" -D warnings --out-dir "$out"
