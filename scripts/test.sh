#!/usr/bin/env bash
# Everything a change has to pass: the checks, the tests, and the release program in real use.
# Each stage says how long it took; the summary says it again.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

# The servers that tests share outlive every test, and go with the whole.
finish() {
  summary
  scripts/services/pgbouncer.sh remove-shared || true
  scripts/services/postgres.sh remove-shared || true
}
trap finish EXIT

# Where the shared database is, so that not every test has to find out.
share_postgres() {
  NOETL_TEST_POSTGRES=$(scripts/services/postgres.sh shared)
  export NOETL_TEST_POSTGRES
}

run_tests() {
  if has cargo-nextest; then
    cargo nextest run --locked --workspace --profile ci --test-threads "$(test_threads)"
  else
    cargo test --locked --workspace --lib --bins --tests --no-fail-fast
  fi
}

# Built as the tests are: with a choice of packages of its own much would be built again, and what is not
# optimised checks more, at 8 seeds a second and core.
run_worlds() {
  cargo build --locked --workspace --bin noetl-sim --quiet
  "$(target_dir)/debug/noetl-sim" --seeds 2000
}

stage "setup" scripts/setup.sh
# shellcheck source=scripts/verify.sh
. scripts/verify.sh
stage "doc tests" cargo test --locked --workspace --doc --quiet
if [ "${NOETL_TEST_SERVICES:-}" != off ]; then stage "shared database" share_postgres; fi
stage "tests" run_tests
# Many times the worlds that are among the tests, with the program they built; `make sim` has more.
stage "simulated worlds" run_worlds
# The heart of the API on the stores people use; `make test-long` asks all of it.
heart=(internal intake projection outbox cleanup replay subscriptions ingress events commands executions runtime metrics dedup batches)
stage "routes on sqlite" scripts/test-routes.sh sqlite "${heart[@]}"
if [ "${NOETL_TEST_SERVICES:-}" != off ]; then
  stage "routes on postgres" scripts/test-routes.sh postgres "${heart[@]}"
fi
# The program as it ships: the tests above run it unoptimised and with extra assertions.
stage "web build" scripts/web.sh if-there
# Together with what chaos needs, in the words chaos uses: another choice of packages would build much of it again.
stage "release build" cargo build --locked --release --package noetl-cli --package noetl-bench --bin noetl --bin noetl-faults
stage "smoke" scripts/smoke.sh "$(target_dir)/release/noetl"
stage "backup drill" scripts/backup-drill.sh "$(target_dir)/release/noetl"
stage "web" scripts/test-web.sh "$(target_dir)/release/noetl"
# Always the same questions here; `make fuzz-api` asks others every time.
if [ "${NOETL_TEST_SERVICES:-}" != off ]; then
  stage "api" env SEED=1 scripts/fuzz-api.sh 5 "$(target_dir)/release/noetl"
fi
# Each thing broken in each way once, under little work; `make chaos` has more.
if [ "${NOETL_TEST_SERVICES:-}" != off ]; then
  stage "chaos" env STEPS=500 SEED=1 scripts/chaos.sh
fi
