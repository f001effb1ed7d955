# Everything a machine with Python 3.11 and make needs. Nothing outside this folder is touched but package caches, and by
# `make run` the home of Toolyard with an example project beside it. As root on Debian, scripts/setup also installs what is
# missing with apt-get: python3-venv, and for the tests Chromium.
BIN := .venv/bin
RUN := .venv/.installed-run
DEV := .venv/.installed-dev
# `make run PROJECT=DIR` serves another project than the example. Not every shell expands ~ there.
PROJECT_DIR := $(patsubst ~/%,$(HOME)/%,$(PROJECT))
# A virtual environment names its own folder: in a checkout that was moved or renamed, it is made anew.
IS_MOVED := $(shell [ ! -e $(BIN)/toolyard ] || head -n 2 $(BIN)/toolyard | grep -qF '$(subst ','\'',$(CURDIR))/$(BIN)/python' || echo yes)
ifneq ($(IS_MOVED),)
.PHONY: $(RUN) $(DEV)
endif
DOCS := .venv-docs/.installed-docs
SITE := build/docs
SPHINX := .venv-docs/bin/python -m sphinx --builder html --fail-on-warning --quiet --conf-dir docs/site
# The console's tools come with `make console`; without them its sources are left alone.
HAS_CONSOLE_TOOLS := command -v node >/dev/null && [ -x console/node_modules/.bin/vitest ]

.PHONY: help install run test soak check check-console format console docs clients bench dist lock clean

help: ## show the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "make %-8s %s\n", $$1, $$2}'

install: $(RUN) ## make .venv with the product
	@scripts/show-path-hint

run: $(RUN) ## start the product with an example project, or with PROJECT=DIR; PORT=N chooses the port
	@if [ -d .home ]; then echo "An earlier version kept its home in .home: '$(BIN)/toolyard serve --home .home' serves it." >&2; fi
	@$(BIN)/toolyard serve $(if $(PROJECT_DIR),--project '$(subst ','\'',$(PROJECT_DIR))',--example)$(if $(PORT), --port $(PORT))

test: $(DEV) ## run the whole suite
	@$(BIN)/python -m pytest -q -n auto --dist worksteal

soak: $(DEV) ## run the long sweeps
	@HYPOTHESIS_PROFILE=soak $(BIN)/python -m pytest -q -n auto --dist worksteal --ignore tests/containers
	@# Containers change the network of the machine, and browsers then drop their connections.
	@HYPOTHESIS_PROFILE=soak $(BIN)/python -m pytest -q -n 0 tests/containers

check: $(DEV) ## format, lint, types and import rules, also of the console
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/python scripts/messages.py
	@$(MAKE) --no-print-directory check-console

check-console:
	@if $(HAS_CONSOLE_TOOLS); then cd console && npm run --silent check; \
	else echo "The console is not checked: that needs Node 20 and its packages, which 'make console' installs."; fi

format: $(DEV) ## write the code in the house's format
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format .
	@$(BIN)/python scripts/messages.py --write
	@if $(HAS_CONSOLE_TOOLS); then cd console && npm run --silent format; fi

console: ## build the web console anew; needs Node 20 and npm
	@cd console && npm ci --ignore-scripts --no-audit --no-fund && npm run build

docs: $(DOCS) ## build the documentation site
	@rm -rf $(SITE)
	@$(SPHINX) --doctree-dir $(SITE)/.doctrees/en docs $(SITE)
	@$(SPHINX) --doctree-dir $(SITE)/.doctrees/zh --define language=zh_CN docs $(SITE)/zh
	@rm -rf $(SITE)/.doctrees
	@echo "The documentation is in $(SITE): open $(SITE)/index.html."
	@echo "For excerpts in its search: python3 -m http.server --directory $(SITE), and open http://localhost:8000"

clients: $(DEV) ## write the TypeScript client anew from the OpenAPI document
	@$(BIN)/python -m clients.typescript.generate

bench: $(DEV) ## measure against peers and limits, as ratios
	@$(BIN)/python -m bench

dist: $(RUN) ## build the sdist and the wheel in dist/, the same bytes for the same commit
	@rm -rf dist
	@SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct 2>/dev/null || echo 1580601600) $(BIN)/python -m hatchling build

lock: $(DEV) ## resolve the dependencies anew
	@$(BIN)/python -m pip --quiet install uv
	@$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-annotate --no-header \
		--python-version 3.11 pyproject.toml --group pyproject.toml:build -o requirements/run.txt
	@$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-annotate --no-header \
		--python-version 3.11 pyproject.toml --group pyproject.toml:build --group pyproject.toml:dev -o requirements/dev.txt
	@$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-annotate --no-header \
		--python-version 3.11 --group pyproject.toml:docs -o requirements/docs.txt
	@$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-annotate --no-header --constraint requirements/dev.txt \
		--python-version 3.11 pyproject.toml --extra postgres -o requirements/image.txt
	@$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-annotate --no-header --constraint requirements/dev.txt \
		--python-version 3.11 --group pyproject.toml:build -o requirements/build.txt

clean: ## remove what make installed and cached, never a home
	rm -rf .venv .venv-docs build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .clients dist

$(RUN): pyproject.toml requirements/run.txt scripts/setup
	@scripts/setup run

$(DEV): pyproject.toml requirements/dev.txt scripts/setup
	@scripts/setup dev
	@touch $(RUN)

$(DOCS): requirements/docs.txt scripts/setup
	@scripts/setup docs
