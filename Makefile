# What a person does with this project. `make help` lists it; nothing is needed beforehand but git, make and Python 3.11.
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV ?= .venv
TORCH ?= cpu
SETTING ?= full
BIN := $(VENV)/bin
TOOLS := $(VENV)/audit
VLLM := $(VENV)/vllm
LLAMA := $(VENV)/llama
# The parts of requirements.lock that roles need, for pip or uv behind a pipe.
packages = $(PYTHON) cli/roles.py $(1) |
LOCKED := --no-deps --require-hashes -r
PIP := $(BIN)/pip --disable-pip-version-check install --quiet
# uv reads no configuration of pip, and is given pip's indexes and folders of wheels. `sort -r`: pip's variables come after its files.
PIPS = $(shell $(BIN)/pip config list | sort -r | sed -nE -e 's/\\n/ /g; /find-links=/s/ /,/g' -e 's/^.*\.find-links=/UV_FIND_LINKS=/p' \
	-e 's/^.*\.index-url=/UV_INDEX_URL=/p; s/^.*\.extra-index-url=/UV_EXTRA_INDEX_URL=/p')
UV = $(PIPS) $(BIN)/uv pip install --system-certs --index-strategy unsafe-best-match --quiet --python $(1)/bin/python
# Lines that run UV are not echoed: an index's address may hold a password.
define NO_TORCH
make setup: torch does not import (the cause is above). If pip took the build for CUDA, take the one for CPUs:
    make clean && PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu make setup
or, for an NVIDIA GPU: make clean && make setup TORCH=cuda
endef
export NO_TORCH

.DEFAULT_GOAL := help
.PHONY: help setup run test test-fast test-containers test-vllm test-llama lint format proto bench evaluate reproduce lock sbom audit clean

help: ## what can be done here
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

$(BIN)/uv: requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11) and "Python 3.11 is needed: make PYTHON=/path/to/python3.11 ...")'
	$(PYTHON) -m venv $(VENV)
	@echo "installing pip and uv into $(VENV)"
	@$(call packages,setup) $(PIP) $(LOCKED) /dev/stdin
	@touch $@

# pip takes torch for CPUs from where its configuration says; each build there has hashes of its own. PyPI's build for
# Linux is for CUDA and lacks CUDA's packages here: PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu make setup
$(VENV)/.ready: $(BIN)/uv pyproject.toml
	$(if $(filter cpu,$(TORCH)),$(PIP) --no-deps $$(grep -o '^torch==[^ ]*' requirements.lock))
	@echo "installing the packages of requirements.lock into $(VENV)"
	@$(call packages,$(if $(filter cuda,$(TORCH)),--cuda) base jobs ray dev lucene) $(call UV,$(VENV)) $(LOCKED) -
	@echo "installing this checkout into $(VENV)"
	@$(call UV,$(VENV)) --no-deps --no-build-isolation --editable .
	@$(BIN)/python -c 'import torch' || { echo "$$NO_TORCH" >&2; exit 1; }
	@touch $@

setup: $(VENV)/.ready ## make the virtual environment with pinned packages (TORCH=cuda for an NVIDIA GPU)

$(TOOLS)/.ready: $(BIN)/uv
	$(PYTHON) -m venv --without-pip $(TOOLS)
	@echo "installing the audit's tools into $(TOOLS)"
	@$(call packages,audit) $(call UV,$(TOOLS)) $(LOCKED) -
	@touch $@

# vLLM for CPUs wants packages of its own, so it has an environment of its own.
$(VLLM)/.ready: $(BIN)/uv .ci/vllm.txt pyproject.toml
	$(PYTHON) -m venv --without-pip $(VLLM)
	@echo "installing the packages of .ci/vllm.txt into $(VLLM)"
	@$(call UV,$(VLLM)) --no-deps -r .ci/vllm.txt
	@$(call UV,$(VLLM)) --no-deps --no-build-isolation --editable .
	@docker/image/name-vllm $(VLLM)/lib/python3.11/site-packages
	@touch $@

# llama.cpp's server, made of the source that comes with its Python binding, and what writes a model's file for it.
$(LLAMA)/.ready: $(BIN)/uv .ci/llama.txt
	$(PYTHON) -m venv --without-pip $(LLAMA)
	@echo "installing the packages of .ci/llama.txt into $(LLAMA)"
	@$(call UV,$(LLAMA)) --no-deps -r .ci/llama.txt
	$(BIN)/pip --disable-pip-version-check download --quiet --no-deps --no-binary llama-cpp-python --dest $(LLAMA) llama-cpp-python==0.3.36
	mkdir -p $(LLAMA)/source
	tar -xzf $(LLAMA)/llama_cpp_python-0.3.36.tar.gz --strip-components 1 --directory $(LLAMA)/source
	$(LLAMA)/bin/cmake -S $(LLAMA)/source/vendor/llama.cpp -B $(LLAMA)/build \
		-DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_USE_PREBUILT_UI=OFF -DLLAMA_OPENSSL=OFF
	$(LLAMA)/bin/cmake --build $(LLAMA)/build --target llama-server --parallel $${CMAKE_BUILD_PARALLEL_LEVEL:-$$(nproc)}
	@touch $@

run: setup ## start the tool services and the gateway, complete a sample, stay up until Ctrl-C
	$(BIN)/toolformer up --sample

# In as many processes as there are cores, four at most: each may hold models and services.
PARALLEL := --numprocesses auto --maxprocesses 4 --no-loadscope-reorder

test: setup ## every check: lint, types, all tests
	$(MAKE) --no-print-directory lint
	$(BIN)/python -m pytest $(PARALLEL) -m "not containers and not vllm and not llama"

test-fast: setup ## the tests that take seconds
	$(BIN)/python -m pytest $(PARALLEL) -m "not slow and not containers and not vllm and not llama"

test-containers: setup ## build the images, run the compose stack and its tests; needs a Docker engine
	$(BIN)/python -m pytest -m containers tests/containers

# What vLLM and its packages warn of is not ours to mend.
test-vllm: $(VLLM)/.ready ## the real vLLM, inside the gateway and as a server, on the processor: makes an environment of 3 GB
	$(VLLM)/bin/python -m pytest -m vllm -o filterwarnings=default --timeout 900 tests/engines

test-llama: setup $(LLAMA)/.ready ## the real server of llama.cpp: compiles it first, with a C++ compiler, in ten minutes or more
	$(BIN)/python -m pytest -m llama tests/engines

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

reproduce: setup ## the whole loop, from texts to the table of results: hours; SETTING=short: minutes, no figures; SETTING=real REAL=CORPUS DATA=BENCHMARKS: of real text, days
	$(BIN)/toolformer reproduce --setting $(SETTING) $(if $(REAL),--real $(REAL)) $(if $(DATA),--data $(DATA))

lock: $(BIN)/uv ## resolve pyproject.toml into requirements.lock, with hashes; keeps versions (UPGRADE=--upgrade takes the newest)
	$(BIN)/python .ci/lock.py $(BIN)/uv $(UPGRADE)

sbom: setup $(TOOLS)/.ready ## what is installed here, with licences, as CycloneDX in build/sbom.json
	mkdir -p build
	$(TOOLS)/bin/cyclonedx-py environment --output-reproducible --of JSON -o build/sbom.json $(BIN)/python

audit: $(TOOLS)/.ready ## whether an advisory is known for a pinned package; says so where it cannot be asked
	$(TOOLS)/bin/python .ci/audit.py requirements.lock

clean: ## remove what `setup` and runs made
	rm -rf $(VENV) var build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
