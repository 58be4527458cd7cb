# Every target does its own set-up; `make demo` and `make test` work on a fresh clone.
.DEFAULT_GOAL := help
.PHONY: help setup demo test check check-fast coverage sim bench gen replay changes

PY := .venv/bin/python
SEEDS ?= 200

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Make .venv ready for development
	@tools/setup.sh dev

demo: ## Watch Hostler keep real video on air through cut cables, killed machines and a killed server
	@tools/setup.sh demo
	@.venv/bin/hostler demo $(ARGS)

test: setup ## Run all tests, two at a time
	@$(PY) -m pytest -n 2 --dist worksteal $(ARGS)

check: setup ## Everything but the tests: style, types, import contracts, tidiness, generated files
	@$(PY) tools/check.py

check-fast: setup ## The same without generated files; for every save
	@$(PY) tools/check.py --fast

coverage: setup ## Run all tests and show which branches none of them took
	@$(PY) -m coverage run -m pytest $(ARGS)
	@$(PY) -m coverage combine --quiet && $(PY) -m coverage report

sim: setup ## Play the trials, then run the simulator over SEEDS seeds (200)
	@$(PY) -m hostler.sim --trials
	@$(PY) -m hostler.sim --seeds $(SEEDS) $(ARGS)

replay: setup ## Run one simulated history again: make replay SEED=17
	@$(PY) -m hostler.sim --seed $(or $(SEED),$(error say which: make replay SEED=17)) $(ARGS)

bench: setup ## Measure, and write bench/results.json
	@$(PY) -m bench $(ARGS)

gen: setup ## Write the generated files: lifecycle diagrams, OpenAPI, CLI reference, JSON Schema
	@$(PY) tools/gen.py

changes: setup ## Show what the next release's CHANGELOG section would say
	@$(PY) tools/changes.py
