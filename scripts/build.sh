#!/usr/bin/env bash
# Builds the release program: bin/noetl, fully optimized and stripped, and bin/noetl.debug with its symbols and
# line tables. Debuggers look for the second file beside the first.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=scripts/needs.sh
. scripts/needs.sh

needs objcopy binutils "separates debug tables from the program"
provide_build_needs
need_disk 4 "a release build"
scripts/web.sh beside cargo build --locked --release --package noetl-cli

built=$(realpath "$(target_dir)/release/noetl")
mkdir -p bin
objcopy --only-keep-debug --compress-debug-sections=zlib "$built" bin/noetl.debug
stripped=$(mktemp "bin/.stripped.XXXXXX")
trap 'rm -f "$stripped"' EXIT
# Named relative to bin/, so that both files can be moved together.
(cd bin && objcopy --strip-all --add-gnu-debuglink=noetl.debug "$built" "$(basename "$stripped")")
chmod 755 "$stripped"
install_program "$stripped"
say "Built bin/noetl ($(du -m bin/noetl | cut -f 1) MB) and bin/noetl.debug."
