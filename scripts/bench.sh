#!/usr/bin/env bash
# Builds the release program and the benchmark beside it, and measures. Stdout holds the
# benchmark's JSON lines and nothing else.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=scripts/needs.sh
. scripts/needs.sh

provide_build_needs
warn_without_python
build_bench
exec "$(target_dir)/release/noetl-bench" "$@"
