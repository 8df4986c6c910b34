# The everyday commands. Each target that has a `##` explains itself in `make help`.

.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# Options for the program a target starts: make run ARGS='--port 9000'
ARGS ?=

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## build the release program and start server and worker (options in ARGS)
	@scripts/run.sh $(ARGS)

build: ## build the release program, target/release/noetl
	cargo build --locked --release --package noetl-cli

test: ## everything a change has to pass: verify, all tests, the release program in use
	@scripts/test.sh

verify: ## formatting, tidy, dependencies, clippy and docs, without running anything
	@scripts/verify.sh

bench: ## measure the release build; JSON lines on stdout (options in ARGS)
	@scripts/bench.sh $(ARGS)

test-long: ## the tests with 500 kills, 50 000 messages and many more generated cases (NOETL_KILLS, NOETL_MESSAGES, PROPTEST_CASES)
	@scripts/test-long.sh

fuzz-api: ## ask a running server everything its OpenAPI document allows, and more (EXAMPLES per route, 200)
	@scripts/fuzz-api.sh $(or $(EXAMPLES),200)

check-deploy: ## check what is in deploy/: Dockerfile, chart, compose file, units
	@deploy/check.sh

soak: ## two servers and a database under load, killed at random for MINUTES (10); then every log is verified
	@scripts/soak.sh

clean: ## remove what was built
	cargo clean

.PHONY: help run build test verify bench test-long fuzz-api check-deploy soak clean
