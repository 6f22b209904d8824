# `make help` lists the targets. Each sets itself up.
.DEFAULT_GOAL := help
PYTHON ?= python3
RUN := .venv/bin/python
URL ?=
OUT ?=
ARGS ?=
NAME ?=
export TRAWL_DATA ?= $(abspath ../shared/data)

.PHONY: help
help: ## This list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' Makefile

.PHONY: setup
setup: ## Create .venv with Trawl and everything it needs
	@PYTHON="$(PYTHON)" sh tools/setup.sh

.PHONY: crawl
crawl: setup ## Crawl URL=https://… (no URL: the bundled demo site) [OUT=folder] [ARGS="--max-pages 50"]
	@.venv/bin/trawl crawl $(if $(URL),"$(URL)",--demo) $(if $(OUT),--out "$(OUT)") $(ARGS)

.PHONY: test
test: setup ## Run every test
	@$(RUN) -m pytest $(ARGS)

.PHONY: unit
unit: setup ## Run the fast tests only
	@$(RUN) -m pytest tests/unit tests/contract $(ARGS)

.PHONY: lint
lint: setup ## Check style, formatting and types
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@.venv/bin/mypy

.PHONY: format
format: setup ## Format the code and mend what can be mended
	@.venv/bin/ruff check --fix-only --quiet .
	@.venv/bin/ruff format .

.PHONY: schemas
schemas: setup ## Write schemas/*.avsc from the records
	@$(RUN) -m tools.schemas

.PHONY: topics
topics: setup ## Write the table of docs/topics.md from the topology
	@$(RUN) -m tools.topics

.PHONY: freeze
freeze: setup ## At a release: keep the schemas and their golden bytes for ever
	@$(RUN) -m tools.freeze

.PHONY: docs
docs: setup ## Write the generated pages of docs/
	@$(RUN) -m tools.docs

.PHONY: lock
lock: setup ## Lock the newest allowed versions for development
	@$(RUN) -m pip install --quiet uv
	@.venv/bin/uv pip compile --quiet --universal --upgrade --python-version 3.11 --no-header --no-annotate \
		--extra dev --extra services --extra browser \
		--output-file requirements-dev.lock pyproject.toml
	@.venv/bin/uv pip compile --quiet --universal --upgrade --python-version 3.11 --no-header --no-annotate \
		--output-file bench/peers.lock bench/peers.in

.PHONY: replay
replay: setup ## Crawl the archived real pages under their own host names; one JSON line
	@$(RUN) -m bench.replay $(ARGS)

.PHONY: bench-crawl
bench-crawl: setup ## Crawl one large site with Trawl and its peers; one JSON line each
	@$(RUN) -m bench.crawl $(ARGS)

.PHONY: bench-extract
bench-extract: setup ## Measure extraction quality and speed; one JSON line per tool and set
	@$(RUN) -m bench.extract $(ARGS)

.PHONY: bench-fetch
bench-fetch: setup ## Measure the fetcher; one JSON line each
	@$(RUN) -m bench.fetch $(ARGS)

.PHONY: bench-services
bench-services: setup ## Crawl one site through the whole stack and embedded; one JSON line
	@$(RUN) -m bench.services $(ARGS)

.PHONY: up
up: setup ## Start the whole stack as local processes: Kafka, registry, Redis, OpenSearch, Prometheus, five services
	@$(RUN) -m devstack up $(ARGS)

.PHONY: down
down: ## Stop what `make up` started, data stays [NAME=fetcher: that alone]
	@$(RUN) -m devstack down $(NAME)

.PHONY: ps
ps: ## Show what runs
	@$(RUN) -m devstack ps

.PHONY: logs
logs: ## Show the ends of the logs [NAME=fetcher]
	@$(RUN) -m devstack logs $(NAME)

.PHONY: test-e2e
test-e2e: setup ## Run the proofs over real servers
	@$(RUN) -m pytest tests/e2e/test_services*.py tests/integration/test_worker_commit.py \
		tests/integration/test_kafka_schemas.py $(ARGS)

.PHONY: soak
soak: setup ## Run the long tests
	@TRAWL_SOAK=1 $(RUN) -m pytest tests/e2e $(ARGS)
	@$(RUN) -m bench.soak_tiny

.PHONY: clean
clean: ## Remove .venv, caches and crawls made here
	@rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .bench crawls
