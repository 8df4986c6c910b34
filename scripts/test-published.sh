#!/usr/bin/env bash
# Runs the portable examples and the commands of the compatibility guide through the published worker and CLI, with a
# debug build of this repository as their server, on Postgres and NATS. Writes the results into the guide. Then runs the
# cases of the gateway guide through the published gateway.
#
# The first run builds the programs from the Rust registry, which takes about 10 minutes on two cores; they stay in
# target/published. They use the shared library of DuckDB's makers; DUCKDB=compiled compiles DuckDB's C++ into the
# worker, which takes about 30 minutes more. Options are passed to scripts/published/run.py: --only TEXT runs some cases.
#
# usage: [DUCKDB=compiled] scripts/test-published.sh [option...]
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

WORKER=5.52.0
CLI=5.3.2
GATEWAY=2.9.1

published=$(target_dir)/published
DUCKDB=${DUCKDB:-library}
if [ "$DUCKDB" = compiled ]; then published=$published-compiled; fi
mkdir -p "$published"
published=$(realpath "$published")
# Postgres runs as a user that has to enter the directory.
database=$(mktemp -d)
chmod 755 "$database"

finish() {
  scripts/services/postgres.sh remove "$database/postgres" || true
  scripts/services/postgres.sh remove "$database/gateway" || true
  rm -rf "$database"
}
trap 'summary; finish' EXIT

# build_published <package> <version>: leaves its programs in $published/<package>-<version>/bin.
build_published() {
  local root=$published/$1-$2
  if [ -e "$root/built" ]; then return; fi
  need_disk 12 "a build of $1 $2"
  # Started outside of this workspace, so that its Cargo files don't apply. Unoptimized: the sources and features are those
  # of a release build, and DuckDB's C++ alone would take half an hour more.
  (
    if [ "$DUCKDB" = library ]; then
      DUCKDB_LIBRARY=$(scripts/duckdb.sh install)
      LINKER=$(command -v cc)
      export DUCKDB_LIBRARY LINKER
      export CXX=$PWD/scripts/published/library/cxx PATH=$PWD/scripts/published/library:$PATH
    fi
    cd /
    CARGO_TARGET_DIR=$published/build CARGO_PROFILE_DEV_DEBUG=0 CARGO_INCREMENTAL=0 \
      cargo install "$1" --version "$2" --locked --debug --force --root "$root"
  ) >&2 || lacking "Could not build $1 $2 from the Rust registry; the reason is above."
  # Written last, so that an interrupted build is repeated.
  touch "$root/built"
}

build_all() {
  build_published noetl-worker "$WORKER"
  build_published noetl "$CLI"
  build_published noetl-gateway "$GATEWAY"
  # Several GiB that nothing needs once the programs are installed.
  rm -rf "$published/build"
}

build_own() { cargo build --locked --package noetl-cli --bin noetl >&2; }

run_cases() {
  local postgres
  postgres=$(scripts/services/postgres.sh start "$database/postgres" fsync=off)
  local duckdb="DuckDB compiled from its sources"
  if [ "$DUCKDB" = library ]; then duckdb="the shared library of DuckDB's makers"; fi
  python3 scripts/published/run.py "$@" \
    --note "Last run: $(date -u +%F), worker $WORKER with $duckdb, CLI $CLI. " \
    --noetl "$(realpath "$(target_dir)/debug/noetl")" \
    --worker "$published/noetl-worker-$WORKER/bin/noetl-worker" \
    --cli "$published/noetl-$CLI/bin/noetl" \
    --postgres "$postgres" \
    --page docs/guide/published-worker.md
}

run_gateway() {
  local postgres
  postgres=$(scripts/services/postgres.sh start "$database/gateway" fsync=off)
  python3 scripts/published/gateway.py \
    --noetl "$(realpath "$(target_dir)/debug/noetl")" \
    --gateway "$published/noetl-gateway-$GATEWAY/bin/noetl-gateway" \
    --postgres "$postgres"
}

stage "build of the published programs" build_all
stage "build of our program" build_own
stage "cases" run_cases "$@"
if [ $# -eq 0 ]; then stage "cases of the gateway" run_gateway; fi
