# The everyday commands. Each target that has a `##` explains itself in `make help`.

.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# Options for the program a target starts: make run ARGS='--port 9000'
ARGS ?=

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## build the release program and start server and worker (options in ARGS)
	@scripts/run.sh $(ARGS)

web: ## build the web UI into web/dist, for the next build of the program (needs Node)
	@scripts/web.sh

build: ## build the release program, target/release/noetl, with the web UI where there is Node
	@scripts/web.sh if-there
	cargo build --locked --release --package noetl-cli

test: ## everything a change has to pass: verify, all tests, the release program in use
	@scripts/test.sh

verify: ## formatting, tidy, dependencies, clippy and docs, without running anything
	@scripts/verify.sh

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

test-long: ## the tests with 500 kills, 50 000 messages and many more generated cases (NOETL_KILLS, NOETL_MESSAGES, PROPTEST_CASES)
	@scripts/test-long.sh

web-long: ## the web UI with 100 000 executions, 100 000 events and a result of 20 MB, measured (EXECUTIONS, ITEMS)
	@$(MAKE) build
	@JOURNEYS=long scripts/test-web.sh target/release/noetl

pictures: ## take the pictures in docs/images again, each page light and dark
	@$(MAKE) build
	@JOURNEYS=pictures scripts/test-web.sh target/release/noetl

fuzz: ## made-up input to everything that reads input, for SECONDS_EACH (60) per target (TARGETS)
	@scripts/fuzz.sh

sbom: ## list what the program is made of, as CycloneDX JSON in target/noetl.cdx.json
	@scripts/sbom.sh

reproduce: ## build the release program twice, in different places, and compare (PACKAGE, BINARY, PROFILE)
	@scripts/reproduce.sh

fuzz-api: ## ask a running server everything its OpenAPI document allows, and more (EXAMPLES per route, 200)
	@scripts/fuzz-api.sh $(or $(EXAMPLES),200)

check-deploy: ## check what is in deploy/: Dockerfile, chart, compose file, units
	@deploy/check.sh

soak: ## two servers and a database under load, killed at random for MINUTES (10); then every log is verified
	@scripts/soak.sh

chaos: ## servers, workers, database and bus, each broken in each way under STEPS (10000) steps; then every log is verified
	@scripts/chaos.sh

sim: ## the control plane on simulated time with everything going wrong, for each of SEEDS (1000, or 5000..6000)
	@scripts/sim.sh

torture: ## everything broken at random under load for MINUTES (60), and callers' words held against each other (SEED)
	@scripts/torture.sh

backup-drill: ## copy what runs, destroy it and go on with the copy elsewhere, on SQLite and Postgres
	@$(MAKE) build
	@scripts/backup-drill.sh

clean: ## remove what was built
	cargo clean

.PHONY: help run web build test verify bench bench-peers bench-check bench-report bench-flame test-long web-long pictures fuzz fuzz-api sbom reproduce check-deploy soak chaos sim torture backup-drill clean
