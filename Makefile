# Everything a fresh machine needs is Python 3.11+, make and pip; each target sets up what it uses.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/installed.txt
# the tests start hundreds of processes, each of which would have to compile the package
unexport PYTHONDONTWRITEBYTECODE

.PHONY: album demo test smoke lint types bench torture docs clean

demo: $(READY)          ## eleven scenes in a few seconds; ends with a page to look at. ALL=1: the long tour
	$(BIN)/python scripts/demo.py $(if $(ALL),--all)

album: $(READY)         ## the photo album of the examples, with pictures in it
	$(BIN)/python examples/album/server.py --data build/album --samples

test: $(READY)          ## every test this machine can run, on its cores; says what it skipped and why. One room: ROOM=jobs, ROOM=backends/s3
	@scripts/install_chromium.sh
	$(BIN)/python -m pytest --numprocesses=auto --maxprocesses=4 --dist=loadfile --no-loadscope-reorder $(if $(ROOM),$(or $(wildcard tests/$(ROOM)),$(error there is no tests/$(ROOM); tests/README.md lists the rooms)))

smoke: $(READY)         ## small end-to-end scripts, without pytest
	$(BIN)/python scripts/smoke

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

bench: $(READY)         ## measure against peers (in .venv-peers), as ratios, beside their bars
	$(BIN)/python -m benchmarks all

torture: $(READY)       ## the same tests with random seeds and many more rounds
	HOLDALL_TORTURE=1 $(BIN)/python -m pytest --numprocesses=auto --maxprocesses=4 --dist=loadfile --no-loadscope-reorder

docs: $(READY)          ## write the reference anew, build the site (build/site/index.html) and run every code block
	$(BIN)/python scripts/reference.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo 'The site is in build/site. With search: $(BIN)/python -m http.server --bind 127.0.0.1 -d build/site'
	$(BIN)/python -m pytest tests/docs

clean:
	rm -rf .venv .venv-* build .hypothesis .mypy_cache .pytest_cache .ruff_cache

$(READY): pyproject.toml
	$(PYTHON) scripts/environment.py .venv --editable '.[media,web]' --group pyproject.toml:dev
