# The everyday commands. Each target that has a `##` explains itself in `make help`.

.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# Options for the program a target starts: make run ARGS='--port 9000'
ARGS ?=

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## build bin/noetl quickly and start server and worker (options in ARGS)
	@scripts/run.sh $(ARGS)

build: ## build bin/noetl as released: fully optimized and stripped, symbols in bin/noetl.debug
	@scripts/build.sh

web: ## build the web UI into web/dist, for the next build of the program (needs Node)
	@scripts/web.sh

check: ## format, clippy and unit tests of the crates that changed since the merge base (BASE)
	@scripts/check.sh

test-one: ## every test of one crate: make test-one CRATE=noetl-engine
	@scripts/test-one.sh $(CRATE)

verify: ## formatting, tidy, dependencies, clippy and docs, without running anything
	@scripts/verify.sh

test: ## everything a change has to pass: verify, both lanes of tests, the program in use
	@scripts/test.sh

test-long: ## the tests with 500 kills, 50,000 messages and many more generated cases (NOETL_KILLS, NOETL_MESSAGES, PROPTEST_CASES)
	@scripts/test-long.sh

test-published: ## run the published worker, CLI, and gateway against this server, and write results into their guide (options in ARGS)
	@scripts/test-published.sh $(ARGS)

test-flakes: ## the real-time lane RUNS (10) times in a row, with every flake by name
	@scripts/test-flakes.sh

hooks: ## switch on the git hooks in .githooks for this clone
	@git config core.hooksPath .githooks
	@echo "Hooks are on. Switch them off with: git config --unset core.hooksPath"

bench: ## measure the release build; JSON lines on stdout (options in ARGS)
	@scripts/bench.sh $(ARGS)

bench-peers: ## measure this program and its peers in one run; JSON lines on stdout (options in ARGS)
	@scripts/bench-peers.sh $(ARGS)

bench-check: ## measure in small and compare ratios with the committed ones
	@scripts/bench-check.sh $(ARGS)

bench-report: ## put the JSON lines of the files in LINES into docs/performance.md, with plots
	@python3 bench/report/render.py docs/performance.md $(LINES)

bench-flame: ## draw where the time of chains goes, as docs/images/flame-STORE.svg (stores in ARGS)
	@scripts/bench-flame.sh $(ARGS)

web-long: ## the web UI with 100,000 executions, 100,000 events and a result of 20 MB, measured (EXECUTIONS, ITEMS)
	@$(MAKE) build
	@JOURNEYS=long scripts/test-web.sh bin/noetl

pictures: ## take the pictures in docs/images again, each page light and dark
	@$(MAKE) build
	@JOURNEYS=pictures scripts/test-web.sh bin/noetl

fuzz: ## generated input for every parser, for SECONDS_EACH (60) per target (TARGETS)
	@scripts/fuzz.sh

sbom: ## list the dependencies of the program, as CycloneDX JSON in target/noetl.cdx.json
	@scripts/sbom.sh

reproduce: ## build the release program twice, in different directories, and compare (PACKAGE, BINARY, PROFILE)
	@scripts/reproduce.sh

fuzz-api: ## send a running server everything its OpenAPI document allows, and more (EXAMPLES per route, 200)
	@scripts/fuzz-api.sh $(or $(EXAMPLES),200)

check-levels: ## check the isolation level of each deployment, in real containers (needs root)
	@$(MAKE) build
	@deploy/levels.sh bin/noetl

check-deploy: ## check the files in deploy/: Dockerfile, chart, compose file, units
	@deploy/check.sh

soak: ## two servers and a database under load, killed at random for MINUTES (10); then every log is verified
	@scripts/soak.sh

chaos: ## servers, workers, database and bus, each broken in each way under STEPS (10,000) steps; then every log is verified
	@scripts/chaos.sh

sim: ## the control plane on simulated time with every fault, for each of SEEDS (1000, or 5000..6000)
	@scripts/sim.sh

attack: ## attack the release program as a hostile caller, author and step, on SQLite and Postgres
	@$(MAKE) build
	@scripts/attack.py bin/noetl $(ARGS)

torture: ## everything broken at random under load for MINUTES (60), and callers' responses compared (SEED)
	@scripts/torture.sh

backup-drill: ## copy a running system, destroy it and continue with the copy, on SQLite and Postgres
	@$(MAKE) build
	@scripts/backup-drill.sh

clean: ## remove everything that was built
	cargo clean
	rm -rf bin

.PHONY: help run build web check test-one verify test test-long test-published test-flakes hooks bench bench-peers bench-check bench-report \
	bench-flame web-long pictures fuzz sbom reproduce fuzz-api check-levels check-deploy soak chaos sim attack torture backup-drill clean
