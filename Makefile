# Each target does all set-up by itself: a machine needs make and Python 3.11 or newer, with venv.
PYTHON = python3
BIN = .venv/bin
NOTEBOOKS = notebooks/[0-9][0-9]_*.ipynb
UNSTABLE = metadata.papermill metadata.language_info.version cell.metadata.papermill cell.metadata.execution \
	cell.metadata.lines_to_next_cell

define FINISH_NOTEBOOKS
import base64, glob, nbformat, pathlib
from dmls2r_lite.command.pages import describe_figures, key_figure
for path in glob.glob("$(NOTEBOOKS)"):
    nb = nbformat.read(path, as_version=4)
    describe_figures(nb)
    nbformat.write(nb, path)
png, _ = key_figure(nbformat.read("notebooks/09_which_rows_to_label.ipynb", as_version=4))
pathlib.Path("notebooks/images/09_which_rows_to_label.png").write_bytes(base64.b64decode(png))
endef
export FINISH_NOTEBOOKS

.PHONY: run test test-all lab exercises notebooks site bench clean

run: .venv/installed  ## all notebooks on Boston Housing, results in runs/
	$(BIN)/dmls2r run boston

define CHECK
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder --durations=10 \
		--nbval-lax --nbval-current-env --nbval-cell-timeout=300
endef

test: .venv/course  ## style, types, unit tests, and every cell of every notebook
	$(CHECK) -m "not exhaustive" tests $(NOTEBOOKS)

test-all: .venv/course  ## the same, with what takes long: every notebook on every table, every set through nbgrader
	$(CHECK) --hypothesis-profile=thorough tests $(NOTEBOOKS)

lab: .venv/installed  ## JupyterLab, at the first notebook
	data="$${DMLS2R_DATA:+$$(realpath "$$DMLS2R_DATA")}"; cd notebooks && \
		DMLS2R_DATA="$$data" ../$(BIN)/jupyter lab 00_problem_and_data.ipynb

exercises: .venv/course  ## a course for nbgrader in course/: student notebooks, solutions, a zip for a class
	$(BIN)/dmls2r course course

notebooks: .venv/course  ## execute the notebooks in place: no diff where nothing has changed
	$(BIN)/jupyter nbconvert --to notebook --execute --inplace --log-level WARN $(NOTEBOOKS)
	$(BIN)/nbstripout --keep-output --keep-count --extra-keys "$(UNSTABLE)" $(NOTEBOOKS)
	$(BIN)/python -c "$$FINISH_NOTEBOOKS"
	$(BIN)/dmls2r course build/course
	cp build/course/release/*/*.ipynb notebooks/exercises/

site: .venv/installed  ## notebooks, exercises, glossary, guides and modules with a search, in build/site
	$(BIN)/python docs/build.py build/site

bench: .venv/installed  ## how cost grows with the data, and what networks side by side save: tables in results/
	$(BIN)/python tests/benchmarks/scale.py results/scale
	$(BIN)/python tests/benchmarks/side_by_side.py results/side_by_side.csv

.venv/installed: pyproject.toml tests/constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "This needs Python 3.11 or newer. If you have one under another name:" \
		"make PYTHON=python3.12 run"; exit 1; }
	test -x $(BIN)/pip || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint tests/constraints.txt --editable '.[lab,test]'
	touch $@

.venv/course: .venv/installed  # apart, because it adds menus to JupyterLab that learners do not need
	$(BIN)/python -m pip install --quiet --constraint tests/constraints.txt --editable '.[course]'
	touch $@

clean:  ## everything that can be made again, but not your runs/ and course/
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache
	find . -name __pycache__ -o -name .ipynb_checkpoints | xargs rm -rf
