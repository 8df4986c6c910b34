#!/usr/bin/env bash
# Whether the release program can be built again, byte for byte: builds what is committed twice, in directories of different names
# and with target directories of their own, and compares digests. What a build could take from its surroundings is fixed:
# paths are written as /noetl and /cargo, the time is that of the commit.
#
#   PACKAGE=noetl-cli BINARY=noetl PROFILE=release scripts/reproduce.sh
#
# Takes two whole builds; a small package (PACKAGE=noetl-model, compared by its library) tells whether the flags do what they should.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

package=${PACKAGE:-noetl-cli}
binary=${BINARY-noetl}
profile=${PROFILE:-release}
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
commit=$(git rev-parse HEAD)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct "$commit")
export SOURCE_DATE_EPOCH CARGO_INCREMENTAL=0
unset CARGO_TARGET_DIR

build() {
  local sources=$place/$1 cargo_home=${CARGO_HOME:-$HOME/.cargo}
  mkdir -p "$sources"
  git archive "$commit" | tar -x -C "$sources"
  # The web UI is part of the program where it was built; both builds get the same.
  if [ -d web/dist ]; then cp -r web/dist "$sources/web/dist"; fi
  (
    cd "$sources"
    RUSTFLAGS="--remap-path-prefix=$sources=/noetl --remap-path-prefix=$cargo_home=/cargo" \
      CFLAGS="-ffile-prefix-map=$sources=/noetl -ffile-prefix-map=$cargo_home=/cargo" \
      cargo build --quiet --locked --profile "$profile" --package "$package"
  )
}

# Prints one digest per thing that was built.
digests() {
  local out=$place/$1/target/${profile/#dev/debug}
  if [ -n "$binary" ] && [ -x "$out/$binary" ]; then
    sha256sum "$out/$binary" | cut -d' ' -f1
  else
    (cd "$out" && find . -maxdepth 1 -name '*.rlib' -print0 | sort -z | xargs -0 -r sha256sum)
  fi
}

say "building $package ($profile) at $commit twice"
build one
build another-name
digests one >"$place/first"
digests another-name >"$place/second"
[ -s "$place/first" ] || { say "nothing was built"; exit 1; }
if ! cmp -s "$place/first" "$place/second"; then
  diff "$place/first" "$place/second" >&2 || true
  say "The two builds differ."
  exit 1
fi
cat "$place/first"
say "Both builds are the same."
