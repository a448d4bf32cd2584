# Everything a newcomer needs: `make demo`, `make test`. Needs Python 3.11-3.13 and make, nothing else.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
ARGS   ?=

.PHONY: install up demo test lint lock

install: $(VENV)/.installed

$(VENV)/.installed: requirements.lock requirements-dev.lock
	@$(PYTHON) -c 'import sys; sys.exit(None if (3, 11) <= sys.version_info < (3, 14) else "Python 3.11, 3.12 or 3.13 is needed; set PYTHON=python3.12 or the like.")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes --requirement requirements.lock --requirement requirements-dev.lock
	@touch $@

up: install
	$(BIN)/python manage.py up $(ARGS)

demo: install
	$(BIN)/python manage.py demo $(ARGS)

lint: install
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	PYTHONPATH=. $(BIN)/lint-imports
	$(BIN)/djade --check $$(git ls-files '*.html')
	$(BIN)/mypy
	EMAIL_URL=smtp://mail.example.com RELIABILITY_BASE_URL=https://reliability.example.com \
		$(BIN)/python manage.py check --deploy --fail-level WARNING
	$(BIN)/python manage.py makemigrations --check --dry-run

# Two at a time what needs no clock to itself; then, alone, what drives a browser or kills processes.
test: lint
ifeq ($(ARGS),)
	$(BIN)/coverage erase
	$(BIN)/python -m pytest --cov --cov-report= -n 2 --dist loadfile -m "not proof and not e2e"
	$(BIN)/python -m pytest --cov --cov-append -m "proof or e2e"
else
	$(BIN)/python -m pytest $(ARGS)
endif

LOCK := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock'

lock:
	$(LOCK) pyproject.toml --output-file requirements.lock
	$(LOCK) --group dev --constraint requirements.lock --output-file requirements-dev.lock
	$(LOCK) --group bench --constraint requirements.lock --output-file requirements-bench.lock
