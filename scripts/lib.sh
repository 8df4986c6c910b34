# shellcheck shell=bash
# What the scripts share: messages, timed stages, a closing summary. Sourced, not run.
#
# A stage runs in the calling shell with `set -e` in force, so the first failing command ends the
# script; the summary then names the stage it happened in.

[ -n "${NOETL_LIB:-}" ] && return
NOETL_LIB=1

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

# Rust's own installer puts cargo here, and a bare shell may not have it in its path.
PATH="$PATH:${CARGO_HOME:-$HOME/.cargo}/bin"

# Incremental builds pay off from the second build on; a machine that builds once only writes them. Nor does
# it use a program long enough to win back the minutes that optimising across crates takes.
if [ -n "${CI:-}" ]; then
  export CARGO_INCREMENTAL=0 CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16
fi

say() { printf '%s\n' "$*" >&2; }
skip() { say "  skipped: $*"; }
has() { command -v "$1" >/dev/null 2>&1; }

# Where cargo puts what it builds.
target_dir() { printf '%s\n' "${CARGO_TARGET_DIR:-target}"; }

# Builds the release program and the benchmark beside it. Always both: what is chosen of the libraries depends on what is
# built together, and they would be built twice.
build_bench() { cargo build --locked --release --package noetl-cli --package noetl-bench --bin noetl --bin noetl-faults --bin noetl-bench >&2; }

# How many tests run at a time: many wait for a process, a disk or a timer and leave a core idle.
test_threads() { printf '%s\n' $(($(nproc) * 2)); }

STAGE=
STAGES=()
STAGE_SINCE=0

# stage <name> <command...>
stage() {
  STAGE=$1
  STAGE_SINCE=$SECONDS
  shift
  say "==> $STAGE"
  "$@"
  STAGES+=("$(printf '  ok     %5ds  %s' $((SECONDS - STAGE_SINCE)) "$STAGE")")
  say "    $STAGE took $((SECONDS - STAGE_SINCE)) s"
  STAGE=
}

summary() {
  local code=$?
  if [ -n "$STAGE" ]; then
    STAGES+=("$(printf '  FAILED %5ds  %s' $((SECONDS - STAGE_SINCE)) "$STAGE")")
  fi
  say
  say "Summary"
  if [ ${#STAGES[@]} -gt 0 ]; then printf '%s\n' "${STAGES[@]}" >&2; fi
  if [ "$code" = 0 ]; then
    say "All good after $SECONDS s."
  else
    say "Stopped after $SECONDS s${STAGE:+, in stage \"$STAGE\"}. The reason is above."
  fi
}
