"""Which module may import which: the method at the front, and a wing for whatever serves it."""

import ast
import graphlib
import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import dmls2r_lite

ROOT = Path(dmls2r_lite.__file__).parent
THE_METHOD = ("model", "losses", "miner", "training", "estimators", "fitting")  # in this order to be read
ALLOWED = {  # what may import what besides itself, at any time
    "foundation": set(),
    "data": {"foundation"},
    "method": {"foundation"},
    "rivals": {"foundation", "method"},
    "practice": {"foundation", "data", "method", "rivals"},
    "study": {"foundation", "data", "method", "rivals", "practice"},
    "teaching": {"foundation", "data", "practice", "study"},
    "command": {"foundation", "data", "practice", "study", "teaching"},
}
FREE_OF_TORCH = {"data", "study"}  # at import; those of data always


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module_name(path): path for path in sorted(ROOT.rglob("*.py"))}
PUBLIC_NAMES = MODULES.pop("dmls2r_lite")  # a rule of its own


def group(module: str) -> str:
    first = module.split(".")[1]
    return "method" if first in THE_METHOD else first


def at_import(tree: ast.AST) -> Iterator[ast.AST]:
    """What runs when a module is imported: nothing inside functions, nothing for type checkers only."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            continue
        yield node
        yield from at_import(node)


def imports(source: str, package: str, every: bool) -> set[str]:
    """The modules that a source in a package imports, and from ours also what may be a name in one.

    With `every` also what is imported inside functions or for type checkers.
    """
    tree = ast.parse(source)
    found = set()
    for node in ast.walk(tree) if every else at_import(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            origin = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            found |= {f"{origin}.{alias.name}" for alias in node.names}
    return found


def imports_of(module: str, every: bool) -> set[str]:
    """The same for a module of ours: other modules of ours by their names, others by their first name."""
    path = MODULES[module]
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    return {
        name.split(".")[0]
        if not name.startswith("dmls2r_lite.")
        else name
        if name in MODULES
        else name.rpartition(".")[0]
        for name in imports(path.read_text(encoding="utf-8"), package, every)
    }


def test_every_module_has_a_place():
    """At the root stand the files of the method, and nothing else."""
    assert {group(module) for module in MODULES} == set(ALLOWED)
    assert {path.stem for path in ROOT.glob("*.py")} == {"__init__", *THE_METHOD}


def test_imports_run_in_one_direction():
    wrong = [
        f"{module} imports {other}"
        for module in MODULES
        for other in sorted(imports_of(module, every=True) & set(MODULES))
        if group(other) not in ALLOWED[group(module)] | {group(module)}
    ]
    assert wrong == []


def test_public_names_are_for_users():
    """They hide where a thing is, so no module imports them; and they import nothing until asked."""
    assert [module for module in MODULES if "dmls2r_lite" in imports_of(module, every=True)] == []
    at_once = imports(PUBLIC_NAMES.read_text(), "dmls2r_lite", every=False)
    assert at_once <= {"importlib.import_module", "typing.TYPE_CHECKING", "typing.Any"}


def test_no_circles():
    """Not by what is imported inside functions or for type checkers either."""
    others = {module: imports_of(module, every=True) & set(MODULES) for module in MODULES}
    order = list(graphlib.TopologicalSorter(others).static_order())  # raises if there is one
    assert len(order) == len(MODULES) > 25


def needs_torch(module: str) -> bool:
    """Whether its import imports torch, itself or through another module."""
    at_once = imports_of(module, every=False)
    return "torch" in at_once or any(map(needs_torch, at_once & set(MODULES)))


def test_torch_is_only_imported_where_it_is_needed():
    assert [m for m in MODULES if group(m) in FREE_OF_TORCH and needs_torch(m)] == []
    assert [m for m in MODULES if group(m) == "data" and "torch" in imports_of(m, every=True)] == []
    assert needs_torch("dmls2r_lite.rivals.plain")  # through its twins of step 1: so the functions can see


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_package_itself_costs_nothing():
    code = """
import sys, time
start = time.perf_counter()
import dmls2r_lite
seconds = time.perf_counter() - start
assert not {"torch", "numpy", "pandas", "sklearn", "scipy", "matplotlib"} & set(sys.modules)
print(seconds)"""
    assert min(float(python(code)) for _ in range(5)) < 0.1


@pytest.mark.parametrize("wing", ["data", "study"])
def test_data_and_study_do_without_torch(wing):
    modules = [module for module in MODULES if group(module) == wing]
    assert len(modules) >= 5
    python(
        f"import importlib, sys\nfor module in {modules}:\n"
        "    importlib.import_module(module)\n    assert 'torch' not in sys.modules, module"
    )


def test_public_names():
    names = ["COREGRegressor", "DMLS2RRegressor", "MSSRRegressor", "load_dataset", "split_dataset"]
    python(
        f"from dmls2r_lite import {', '.join(names)}\nimport dmls2r_lite\n"
        f"assert set({names}) <= set(dir(dmls2r_lite))"
    )
    assert set(names) <= set(dmls2r_lite.__all__)
    for name in dmls2r_lite.__all__:
        assert getattr(dmls2r_lite, name).__module__.startswith("dmls2r_lite.")
    with pytest.raises(AttributeError, match="module 'dmls2r_lite' has no attribute 'DMLS3RRegressor'"):
        dmls2r_lite.DMLS3RRegressor  # noqa: B018


def n_lines(module: str) -> int:
    return len(MODULES[module].read_text(encoding="utf-8").splitlines())


def test_no_module_is_long():
    assert {module: n for module in MODULES if (n := n_lines(module)) > 420} == {}


def test_the_method_can_be_read_in_an_hour():
    assert sum(n_lines(f"dmls2r_lite.{name}") for name in THE_METHOD) <= 1150


def test_text_says_where_things_are():
    text = (ROOT.parent / "docs" / "how_it_is_made.md").read_text(encoding="utf-8")
    folders = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert set(re.findall(r"^\| \[dmls2r_lite/(\w+)\]", text, flags=re.M)) == folders
    assert tuple(re.findall(r"^\d\. \[(\w+)\.py\]", text, flags=re.M)) == THE_METHOD
