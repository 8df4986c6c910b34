# shellcheck shell=bash
# The lanes of tests, for test.sh, test-long.sh, test-one.sh and test-routes.sh. Sourced after lib.sh, not run.
#
# Deterministic tests run in parallel and have one attempt. Real-time tests (processes, leases, timers, memory,
# brokers) run eight per processor and have two; each that needed the second is a flake, and more than two flakes fail
# the run. `.config/real-time.filter` says which test is in which lane, `.config/nextest.toml` how a lane runs.

[ -n "${NOETL_LANES:-}" ] && return
NOETL_LANES=1

FLAKES_MAX=2
REAL_TIME=$(grep -v '^#' .config/real-time.filter)
# The whole suite of the store through a connection pooler is for `make test-long`.
LONG='test(/^pooled::postgres::/)'
# Deterministic tests of crates that hold snapshots.
SNAPSHOTS="(package(noetl-playbook) | package(noetl-server) | (package(noetl-cli) & test(/^(check|help|payload|run)::/))) & not ($REAL_TIME)"

has_services() { [ "${NOETL_TEST_SERVICES:-}" != off ]; }

# Binaries that passed a whole run in this clone and have not changed since. No lane runs them again, unless CI or
# ALL is set; find_unchanged fills it.
UNCHANGED='none()'
PASSED=$(target_dir)/passed-tests.json

find_unchanged() {
  if [ -z "${CI:-}${ALL:-}" ]; then UNCHANGED=$(scripts/unchanged-tests.py filter "$PASSED"); fi
  say "  $(grep -o 'binary_id' <<<"$UNCHANGED" | wc -l) test binaries passed before and have not changed; ALL=1 runs them too."
}

# Returns true if this binary passed before and has not changed since.
is_unchanged() { [[ " $UNCHANGED " == *" binary_id(=$1) "* ]]; }

# A run that skipped a check must not hide it from the next one.
record_passed() {
  if [ ! -s "$NOETL_TEST_SKIPS_FILE" ]; then scripts/unchanged-tests.py record "$PASSED"; fi
}

# Prepares a run of several lanes: files for skips and flakes, a fixed seed for generated cases, and the removal
# of shared servers at the end.
start_gate() {
  NOETL_TEST_SKIPS_FILE=$(mktemp)
  NOETL_TEST_FLAKES_FILE=$(mktemp)
  export NOETL_TEST_SKIPS_FILE NOETL_TEST_FLAKES_FILE
  # `make test-long` draws another one for each run.
  export PROPTEST_RNG_SEED=${PROPTEST_RNG_SEED:-1} NOETL_TEST_SEED=${NOETL_TEST_SEED:-1}
  # shellcheck disable=SC2034 # test.sh uses it.
  PROGRAMS=$(target_dir)/debug
  trap finish_gate EXIT
  need_disk 15 "a full run of the tests"
}

# The servers that tests share outlive every test and end with the run.
finish_gate() {
  summary
  rm -f "$NOETL_TEST_SKIPS_FILE" "$NOETL_TEST_FLAKES_FILE"
  scripts/services/pgbouncer.sh remove-shared || true
  scripts/services/postgres.sh remove-shared || true
}

# The tests of the DuckDB tool, which only programs built for it have. They need one crate of the workspace.
lane_duckdb() {
  local library
  if is_unchanged noetl-tools::it; then return; fi
  if ! has npm; then
    skip npm "install Node 20.19 or newer" "the tests of the DuckDB tool"
    return
  fi
  library=$(scripts/duckdb.sh install)
  DUCKDB_LIB_DIR=$library LD_LIBRARY_PATH=$library${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} \
    cargo nextest run --locked --package noetl-tools --features duckdb --profile deterministic -E 'test(duckdb)'
}

# Starts the database that tests share, so that not every test has to look for it.
share_postgres() {
  if ! has_services; then return; fi
  NOETL_TEST_POSTGRES=$(scripts/services/postgres.sh shared)
  export NOETL_TEST_POSTGRES
}

# tests <profile> <filter> [option..]
tests() {
  local profile=$1 filter=$2 none=fail
  shift 2
  # A lane may be empty only because nothing in it changed.
  if [ "$UNCHANGED" != 'none()' ]; then none=pass; fi
  cargo nextest run --locked --workspace --no-tests "$none" --profile "$profile" "$@" -E "($filter) & not ($UNCHANGED)"
}

# A stale snapshot fails; none is written.
lane_snapshots() {
  INSTA_UPDATE=no tests deterministic "$SNAPSHOTS" --test-threads "$(test_threads)"
}

lane_deterministic() {
  tests deterministic "not ($REAL_TIME) & not ($SNAPSHOTS)" --test-threads "$(test_threads)"
}

lane_real_time() {
  local log code=0
  log=$(mktemp)
  # Most of the time these wait for timers, leases, and processes.
  tests real-time "($REAL_TIME) & not $LONG" --test-threads $(($(nproc) * 8)) 2> >(tee "$log" >&2) || code=$?
  # Lines such as "   FLAKY 2/2 [   1.234s] noetl-cli::it dev::stops".
  sed 's/\x1b\[[0-9;]*m//g' "$log" | awk '$1 == "FLAKY" { sub(/^.*\] */, ""); print }' | sort -u >>"$NOETL_TEST_FLAKES_FILE"
  rm -f "$log"
  if [ "$code" != 0 ]; then return "$code"; fi
  if [ "$(wc -l <"$NOETL_TEST_FLAKES_FILE")" -gt "$FLAKES_MAX" ]; then
    say "More than $FLAKES_MAX tests passed only at their second attempt; the summary names them."
    return 1
  fi
}

# lane_routes sqlite|postgres [module..]: the tests of the routes on another store than memory.
lane_routes() {
  local wanted='binary_id(noetl-server::it)'
  local store=$1
  shift
  if [ $# -gt 0 ]; then wanted+=" & test(/^($(IFS='|' && echo "$*"))::/)"; fi
  NOETL_TEST_STORE=$store tests deterministic "$wanted" --test-threads "$(test_threads)"
}
