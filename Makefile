# What a person does with this project. `make help` lists it; nothing is needed beforehand but git, make and Python 3.11.
SHELL := /bin/bash
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV ?= .venv
TORCH ?= cpu
SETTING ?= full
BIN := $(VENV)/bin
PINS := $(addprefix requirements/,torch-needs.txt torch-$(TORCH).txt dev.txt service-wiki_search-nodeps.txt)
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check
LOCKED := $(INSTALL) --require-hashes
TOOLS := $(VENV)/maintenance
# Every requirements/NAME.in but these becomes NAME.txt, in the versions of dev.txt: http.in is a part of others.
ROLES := $(filter-out dev http,$(basename $(notdir $(wildcard requirements/*.in))))
# Resolved as they stand, without what they need; and with torch, which all others leave to torch-*.txt.
ALONE := jobs-deepspeed service-wiki_search-nodeps
WITH_TORCH := torch-cuda

.DEFAULT_GOAL := help
.PHONY: help setup run test test-fast test-containers lint format proto bench evaluate reproduce lock sbom audit clean

help: ## what can be done here
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

LOCK := $(TOOLS)/bin/uv pip compile --quiet --python-version 3.11 --no-header --annotation-style line --generate-hashes
TORCH_APART := --override requirements/torch-apart.txt

$(VENV)/.ready: $(PINS) pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11) and "Python 3.11 is needed: make PYTHON=/path/to/python3.11 ...")'
	$(PYTHON) -m venv $(VENV)
	$(LOCKED) -r requirements/torch-needs.txt
	$(if $(filter cpu,$(TORCH)),$(INSTALL),$(LOCKED)) -r requirements/torch-$(TORCH).txt
	$(LOCKED) -r requirements/dev.txt
	$(LOCKED) --no-deps -r requirements/service-wiki_search-nodeps.txt
	$(INSTALL) --no-deps --editable .
	@touch $@

setup: $(VENV)/.ready ## make the virtual environment with pinned packages (TORCH=cuda for an NVIDIA GPU)

$(TOOLS)/.ready: requirements/maintenance.txt
	$(PYTHON) -m venv $(TOOLS)
	$(TOOLS)/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/maintenance.txt
	@touch $@

run: setup ## start the tool services and the gateway, complete a sample, stay up until Ctrl-C
	$(BIN)/toolformer up --sample

test: setup ## every check: lint, types, all tests
	$(MAKE) --no-print-directory lint
	$(BIN)/python -m pytest -m "not containers"

test-fast: setup ## the tests that take seconds
	$(BIN)/python -m pytest -m "not slow and not containers"

test-containers: setup ## build the images, run the compose stack and its tests; needs a Docker engine
	$(BIN)/python -m pytest -m containers tests/containers

lint: setup ## ruff, dead code and strict types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/vulture
	$(BIN)/mypy

format: setup ## let ruff arrange the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

proto: setup ## write toolformer/v1 anew from proto/
	$(BIN)/python proto/generate.py

bench: setup ## speed beside the named peers; writes benchmarks/results/
	$(BIN)/python -m benchmarks.decode
	$(BIN)/python -m benchmarks.serve --concurrency 8 32 --tool-ms 0 200
	$(BIN)/python -m benchmarks.soak
	$(BIN)/python -m benchmarks.annotate_filter
	$(BIN)/python -m benchmarks.finetune

evaluate: setup ## held-out prompts against a running stack (`make run` in another terminal)
	$(BIN)/toolformer evaluate

reproduce: setup ## the whole loop, from texts to the table of results: hours; SETTING=short: minutes, no figures
	$(BIN)/toolformer reproduce --setting $(SETTING)

lock: $(TOOLS)/.ready ## resolve requirements/*.in into pinned, hashed files; keeps versions (UPGRADE=--upgrade takes the newest)
	$(LOCK) $(UPGRADE) $(TORCH_APART) requirements/dev.in -o requirements/dev.txt
	for role in $(ROLES); do $(LOCK) $(UPGRADE) -c requirements/dev.txt \
		$$(case " $(ALONE) " in *" $$role "*) echo --no-deps ;; esac) \
		$$(case " $(WITH_TORCH) " in *" $$role "*) ;; *) echo $(TORCH_APART) ;; esac) \
		requirements/$$role.in -o requirements/$$role.txt || exit 1; done

sbom: setup $(TOOLS)/.ready ## what is installed here, with licences, as CycloneDX in build/sbom.json
	mkdir -p build
	$(TOOLS)/bin/cyclonedx-py environment --output-reproducible --of JSON -o build/sbom.json $(BIN)/python

audit: $(TOOLS)/.ready ## whether an advisory is known for a pinned package; says so where it cannot be asked
	$(TOOLS)/bin/python requirements/audit.py $(patsubst %,requirements/%.txt,dev $(ROLES))

clean: ## remove what `setup` and runs made
	rm -rf $(VENV) var build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
