# shellcheck shell=bash
# Shared by the scripts: messages, skips, timed stages, a closing summary. Sourced, not run.
#
# A stage runs in the calling shell with `set -e` in force, so the first failing command ends the
# script; the summary then names the stage it happened in.
#
# Exit codes: 1 a check failed, 2 wrong usage, 3 the environment lacks something (a program, a registry,
# disk space).

[ -n "${NOETL_LIB:-}" ] && return
NOETL_LIB=1

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

# Rust's own installer puts cargo here, and a bare shell may not have it in its path.
PATH="$PATH:${CARGO_HOME:-$HOME/.cargo}/bin"

# Incremental builds pay off from the second build on; a machine that builds once only writes them.
if [ -n "${CI:-}" ]; then export CARGO_INCREMENTAL=0; fi

say() { printf '%s\n' "$*" >&2; }
has() { command -v "$1" >/dev/null 2>&1; }

# lacking <text...>: ends the script because the environment lacks something.
lacking() {
  say "$*"
  exit 3
}

# skip <missing part> <command that installs it> <what is left out>: records the skip for the summary. With CI
# set, nothing may be left out, so a missing part ends the script.
skip() {
  if [ -n "${CI:-}" ]; then
    lacking "Missing: $1, needed for: $3. Install it with: $2"
  fi
  unsupported "$@"
}

# unsupported <missing part> <how to get it> <what is left out>: records a skip for something that the machine
# itself may not offer, such as network namespaces. Never ends the script.
unsupported() {
  say "  skipped: $3 ($1 is missing; $2)"
  if [ -n "${NOETL_TEST_SKIPS_FILE:-}" ]; then printf '%s\t%s\t%s\n' "$1" "$2" "$3" >>"$NOETL_TEST_SKIPS_FILE"; fi
}

# An interrupted script has not succeeded, although its last command may have.
trap 'exit 130' INT
trap 'exit 143' TERM

# free_port: prints a free port of 127.0.0.1 for a server that is also restarted. The kernel gives ports of its
# own range to outgoing connections, so a port of that range may be in use after the restart.
free_port() {
  python3 -c '
import random, socket
try:
    with open("/proc/sys/net/ipv4/ip_local_port_range") as file:
        end = int(file.read().split()[0])
except OSError:
    end = 32768
for port in random.sample(range(10000, max(end, 11000)), 1000):
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            continue
    print(port)
    break'
}

# Where cargo puts what it builds.
target_dir() { printf '%s\n' "${CARGO_TARGET_DIR:-target}"; }

# install_program <built program>: leaves it as bin/noetl, in one step, so that a running bin/noetl is not
# changed under its process.
install_program() {
  mkdir -p bin
  cp "$1" "bin/.noetl.$$"
  mv -f "bin/.noetl.$$" bin/noetl
}

# need_disk <GiB> <what for>: a build that fills the disk leaves truncated files that later builds trip over.
need_disk() {
  local free
  mkdir -p "$(target_dir)"
  free=$(df -Pk "$(target_dir)" | awk 'NR == 2 { print int($4 / 1048576) }')
  if [ "$free" -lt "$1" ]; then
    lacking "Only $free GiB are free at $(realpath "$(target_dir)"), and $2 takes $1. Free some space, for example with" \
      "'cargo clean', or set CARGO_TARGET_DIR to another disk."
  fi
}

# Builds the release program and the benchmark beside it. Always both: the features of shared libraries depend
# on the packages built together, and a second selection would build them twice.
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

# Stages that run beside others: process group, name, start, and output of each.
BESIDE=()

# beside <name> <command...>: starts a stage in the background, for one that mostly waits or may take what the others
# leave. await_beside waits for it, and prints its output if it failed.
beside() {
  local name=$1 output
  shift
  output=$(mktemp)
  say "==> $name (beside the next stages)"
  # Job control gives the stage a process group of its own, so that all of it ends with the script.
  set -m
  # No `&&` here: it would switch off `set -e` inside the command.
  (
    set -e
    "$@"
    : >"$output.ok"
  ) >"$output" 2>&1 </dev/null &
  BESIDE+=("$!|$name|$SECONDS|$output")
  set +m
}

# at_idle <command...>: runs it only while the processors have nothing else to do.
at_idle() {
  if has chrt; then chrt --idle --pid 0 "$BASHPID" 2>/dev/null || true; fi
  "$@"
}

# Waits for every stage that runs beside the others, in the order they were started.
await_beside() {
  local row group name since output failed=
  for row in "${BESIDE[@]}"; do
    IFS='|' read -r group name since output <<<"$row"
    wait "$group" || true
    if [ -e "$output.ok" ]; then
      STAGES+=("$(printf '  ok     %5ds  %s (beside others)' $((SECONDS - since)) "$name")")
      say "    $name ended after $((SECONDS - since)) s"
    else
      failed=1
      STAGES+=("$(printf '  FAILED %5ds  %s (beside others)' $((SECONDS - since)) "$name")")
      say "==> Output of \"$name\", which failed:"
      cat "$output" >&2
    fi
    rm -f "$output" "$output.ok"
  done
  BESIDE=()
  if [ -n "$failed" ]; then return 1; fi
}

# Ends the stages that still run beside others, after a failure.
end_beside() {
  local row group rest
  for row in "${BESIDE[@]}"; do
    IFS='|' read -r group rest <<<"$row"
    kill -TERM -- "-$group" 2>/dev/null || true
    wait "$group" 2>/dev/null || true
    rm -f "${rest##*|}" "${rest##*|}.ok"
  done
  BESIDE=()
}

# Prints each missing part once, with how many checks it left out and the command that installs it.
list_skips() {
  # A bare return in an exit trap has the status of the failed command, which would end the trap.
  if [ ! -s "${NOETL_TEST_SKIPS_FILE:-/dev/null}" ]; then return 0; fi
  say "Skipped: $(wc -l <"$NOETL_TEST_SKIPS_FILE") checks, for lack of:"
  sort "$NOETL_TEST_SKIPS_FILE" | awk -F '\t' '
    $1 != part { if (part != "") print_part(); part = $1; how = $2; count = 0 }
    { count++ }
    function print_part() { printf "  %-14s %3d skipped   %s\n", part, count, how }
    END { print_part() }' >&2
}

summary() {
  local code=$?
  end_beside
  if [ -n "$STAGE" ]; then
    STAGES+=("$(printf '  FAILED %5ds  %s' $((SECONDS - STAGE_SINCE)) "$STAGE")")
  fi
  say
  say "Summary"
  if [ ${#STAGES[@]} -gt 0 ]; then printf '%s\n' "${STAGES[@]}" >&2; fi
  list_skips
  if [ -s "${NOETL_TEST_FLAKES_FILE:-/dev/null}" ]; then
    say "Flakes: $(wc -l <"$NOETL_TEST_FLAKES_FILE"), each passed at its second attempt:"
    sed 's/^/  /' "$NOETL_TEST_FLAKES_FILE" >&2
  fi
  if [ "$code" = 0 ]; then
    say "All good after $SECONDS s."
  else
    say "Stopped after $SECONDS s${STAGE:+, in stage \"$STAGE\"}, with exit code $code. The reason is above."
    if [ "$(df -Pk "$(target_dir)" 2>/dev/null | awk 'NR == 2 { print int($4 / 1024) }')" -lt 200 ] 2>/dev/null; then
      say "The disk is full. Free some space, then run 'cargo clean' once: files may be cut short."
    fi
  fi
}
