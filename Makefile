# What a person does with this project. `make help` lists it; nothing is needed beforehand but git, make and Python 3.11.
SHELL := /bin/bash
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV ?= .venv
TORCH ?= cpu
SETTING ?= full
BIN := $(VENV)/bin
PINS := requirements/torch-$(TORCH).txt requirements/dev.txt requirements/service-wiki_search-nodeps.txt
ROLES := demo-world service-calculator service-calendar service-wiki_search service-translation service-question_answering gateway jobs cli cli-remote bench evaluation-harness

.DEFAULT_GOAL := help
.PHONY: help setup run test test-fast test-containers lint format proto bench evaluate reproduce lock clean

help: ## what can be done here
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

$(VENV)/.ready: $(PINS) pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11) and "Python 3.11 is needed: make PYTHON=/path/to/python3.11 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements/torch-$(TORCH).txt
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements/dev.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps -r requirements/service-wiki_search-nodeps.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

setup: $(VENV)/.ready ## make the virtual environment with pinned packages (TORCH=cuda for an NVIDIA GPU)

run: setup ## start the tool services and the gateway, complete a sample, stay up until Ctrl-C
	$(BIN)/toolformer up --sample

test: setup ## every check: lint, types, all tests
	$(MAKE) --no-print-directory lint
	$(BIN)/python -m pytest -m "not containers"

test-fast: setup ## the tests that take seconds
	$(BIN)/python -m pytest -m "not slow and not containers"

test-containers: setup ## build the images, run the compose stack and its tests; needs a Docker engine
	$(BIN)/python -m pytest -m containers tests/containers

lint: setup ## ruff and strict types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: setup ## let ruff arrange the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

proto: setup ## write toolformer/v1 anew from proto/
	$(BIN)/python proto/generate.py

bench: setup ## speed beside the named peers; writes benchmarks/results/
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements/bench.txt
	$(BIN)/python -m benchmarks.decode
	$(BIN)/python -m benchmarks.http_cost
	$(BIN)/python -m benchmarks.serve --concurrency 8 32 --tool-ms 0 200
	$(BIN)/python -m benchmarks.soak
	$(BIN)/python -m benchmarks.annotate_filter
	$(BIN)/python -m benchmarks.finetune
	$(BIN)/python -m benchmarks.services
	$(BIN)/python -m benchmarks.wiki_search

evaluate: setup ## held-out prompts against a running stack (`make run` in another terminal)
	$(BIN)/toolformer evaluate

reproduce: setup ## the whole loop, from texts to the table of results: hours; SETTING=short: minutes, no figures
	$(BIN)/toolformer reproduce --setting $(SETTING)

lock: setup ## resolve requirements/*.in anew into pinned files
	$(BIN)/pip install --quiet uv==0.13.8
	$(BIN)/uv pip compile --quiet --upgrade --python-version 3.11 --no-header --annotation-style line --override requirements/torch-apart.txt requirements/dev.in -o requirements/dev.txt
	for role in $(ROLES); do $(BIN)/uv pip compile --quiet --python-version 3.11 --no-header --annotation-style line \
		--override requirements/torch-apart.txt -c requirements/dev.txt requirements/$$role.in -o requirements/$$role.txt; done

clean: ## remove what `setup` and runs made
	rm -rf $(VENV) var build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
