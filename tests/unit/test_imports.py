"""Importing has no side effect and loads what is used, no more."""

from __future__ import annotations

import ast
import functools
import importlib
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

from support import ROOT

HEAVY = ("numpy", "scipy", "pandas", "matplotlib", "mlflow", "sklearn", "polars", "pyarrow", "yaml")


@functools.cache
def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def loaded_by(code: str) -> set[str]:
    """Heavy modules in a fresh interpreter after the code has run."""
    script = (
        f"import sys, json\n{code}\nprint(json.dumps([m for m in {HEAVY!r} if m in sys.modules]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_the_package_loads_nothing() -> None:
    assert loaded_by("import cmtrack; dir(cmtrack)") == set()


@pytest.mark.slow
@pytest.mark.parametrize(
    "names",
    [
        "cmtrack.grouping import *",
        "cmtrack.statistics import *",
        "cmtrack.metrics import *",
        "cmtrack.prevalence import *",
        "cmtrack.rough import *",
        "cmtrack.rows import *",
        "cmtrack.segments import *",
        "cmtrack.evaluation import *",
        "cmtrack import FamilyEvaluation",
    ],
)
def test_numbers_need_numpy_and_scipy_only(names: str) -> None:
    """Each is entered first: the catalog of metrics reads the rooms' sections, and no import may meet itself."""
    loaded = loaded_by(f"from {names}")
    assert "numpy" in loaded
    assert loaded <= {"numpy", "scipy"}


@pytest.mark.slow
def test_evaluating_plain_data_needs_no_more() -> None:
    code = (
        "import cmtrack\n"
        "e = cmtrack.evaluate([0, 1, 2, 1], y_prob=[[.8, .1, .1], [.2, .6, .2], [.1, .1, .8], [.5, .3, .2]],\n"
        "    grouping=cmtrack.Grouping({'a': [0], 'b': [1, 2]}))\n"
        "assert e.metrics and e.intervals and e.warnings and repr(e)\n"
        "assert e + e\n"
    )
    assert loaded_by(code) == {"numpy", "scipy"}


@pytest.mark.slow
def test_distributions_are_loaded_by_the_tests_that_need_them() -> None:
    """Importing ``scipy.stats`` takes longer than many an evaluation, and fails where another library is hidden."""
    code = (
        "import sys\n"
        "import cmtrack.families, cmtrack.metrics, cmtrack.report, cmtrack.tracking\n"
        "from cmtrack.comparison import *\n"
        "from cmtrack.plots import *\n"
        "from cmtrack import compare, evaluate\n"
        "y = [0, 1] * 20\n"
        "runs = {'a': evaluate(y, [0, 1] * 19 + [1, 1]), 'b': evaluate(y, [0, 1] * 18 + [1, 0] * 2)}\n"
        "compare(runs, rank_by='binary/matthews_corrcoef').to_frame()\n"
        "print('scipy.stats' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.strip() == "False"


def test_no_side_effect_on_threads_or_logging() -> None:
    code = (
        "import logging, threading\n"
        "before = list(logging.root.handlers), threading.active_count()\n"
        "import cmtrack.metrics, cmtrack.evaluation\n"
        "assert (list(logging.root.handlers), threading.active_count()) == before\n"
    )
    assert "mlflow" not in loaded_by(code)


@pytest.mark.slow
def test_importing_everything_registers_begins_and_writes_nothing() -> None:
    code = """if True:
        import importlib, os, pkgutil, sys, threading
        seen, register = [], os.register_at_fork

        def registered(**hooks):
            seen.append(sys._getframe(1).f_globals["__name__"])
            register(**hooks)

        def audited(event, values):
            if event == "open" and values[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) and values[0] != os.devnull:
                seen.append(f"wrote {values[0]}")

        import mlflow, matplotlib.font_manager  # which do that
        os.register_at_fork = registered
        sys.addaudithook(audited)
        threads = threading.enumerate()
        import cmtrack
        modules = [module.name for module in pkgutil.walk_packages(cmtrack.__path__, "cmtrack.")]
        for name in set(modules) - {"cmtrack.__main__"}:
            importlib.import_module(name)
        assert len(modules) > 150 and "cmtrack.tracking.spool" in modules, modules
        assert not [place for place in seen if place.startswith(("cmtrack", "wrote"))], seen
        assert threading.enumerate() == threads
    """
    subprocess.run([sys.executable, "-B", "-W", "ignore", "-c", code], check=True, timeout=300)


def test_every_public_name_exists() -> None:
    import cmtrack

    assert set(cmtrack.__all__) <= set(dir(cmtrack))
    for name in cmtrack.__all__:
        assert getattr(cmtrack, name).__doc__


@pytest.mark.parametrize(
    "package", ["cmtrack", "cmtrack.comparison", "cmtrack.evaluation", "cmtrack.metrics"]
)
def test_the_stub_lists_the_names_that_the_package_has(package: str) -> None:
    module = importlib.import_module(package)
    folder = Path(str(module.__file__)).parent
    stub = ast.parse((folder / "__init__.pyi").read_text(encoding="utf-8"))
    lines = [
        (node.module, alias)
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    ]
    # "as" makes a name of a stub public
    assert sorted(alias.asname for _, alias in lines) == module.__all__
    assert all(alias.name == alias.asname for _, alias in lines)
    for home, alias in lines:
        assert getattr(module, alias.name) is getattr(importlib.import_module(home), alias.name)
    # a module would take the name's place
    assert not {path.stem for path in folder.iterdir()} & set(module.__all__)
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nothing'"):
        module.nothing  # noqa: B018


# -- what is declared ------------------------------------------------------------------------------------------------

DISTRIBUTIONS = {"PIL": "pillow", "sklearn": "scikit-learn", "yaml": "pyyaml"}
"""Where a module is not called like what is installed."""
OPTIONAL = {
    "dask": "dask",
    "polars": "test",
    "pyspark": "spark",
    "ray": "ray",
    "statsmodels": "demo",
}
"""Modules that cmtrack imports only where they were asked for, with the extra that brings them."""


def imported(folder: Path) -> dict[str, set[str]]:
    """Third-party modules that are imported anywhere in a package, with the files."""
    found: dict[str, set[str]] = {}
    for file in folder.rglob("*.py"):
        for node in ast.walk(parsed(file)):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module or ""]
            for top in {name.split(".")[0] for name in names}:
                if top not in sys.stdlib_module_names and not top.startswith("cmtrack"):
                    found.setdefault(top, set()).add(str(file.relative_to(ROOT)))
    return found


def declared(requirements: list[str]) -> set[str]:
    return {re.split(r"[^\w-]", text, maxsplit=1)[0].lower() for text in requirements}


@pytest.mark.slow
def test_what_is_imported_is_declared_and_nothing_else() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = imported(ROOT / "cmtrack")
    extras = {top for top in found if top in OPTIONAL}
    needed = {
        DISTRIBUTIONS.get(top, top): files for top, files in found.items() if top not in extras
    }
    hard = declared(project["dependencies"])
    assert {name: files for name, files in needed.items() if name not in hard} == {}
    assert hard - set(needed) == set()  # nothing is installed for nothing
    for top in extras:
        assert DISTRIBUTIONS.get(top, top) in declared(
            project["optional-dependencies"][OPTIONAL[top]]
        )


def test_what_the_hooks_import_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    known = declared([*project["dependencies"], *chain(*project["optional-dependencies"].values())])
    found = imported(ROOT / "integrations" / "cmtrack_integrations")
    alone = {"pytorch_lightning"}  # the other name of lightning
    assert {
        top: files
        for top, files in found.items()
        if DISTRIBUTIONS.get(top, top) not in known | alone
    } == {}


PUBLIC = ("data", "entities", "environment_variables", "exceptions", "models")
"""Rooms of MLflow that it documents."""
INSIDE = {"cmtrack/tracking/mlflow_inside.py"}
"""The one file that uses what MLflow does not document."""


def insides_of_mlflow(tree: ast.Module) -> Iterator[str]:
    """What a module uses of MLflow that is in no documented room, or whose name begins with an underscore."""
    bound = {"mlflow", "run", "client"}
    for node in ast.walk(tree):
        paths: list[str] = []
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "mlflow":
            paths = [f"{node.module}.{alias.name}" for alias in node.names]
            bound |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            paths = [alias.name for alias in node.names if alias.name.split(".")[0] == "mlflow"]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            paths = [
                one.value
                for one in node.args
                if isinstance(one, ast.Constant) and "mlflow." in str(one.value)
            ]
        for path in paths:
            _, *rooms = path.split(".")
            if any(room.startswith("_") for room in rooms) or (
                len(rooms) > 1 and rooms[0] not in PUBLIC
            ):
                yield path
    for node in ast.walk(tree):
        private = (
            isinstance(node, ast.Attribute)
            and node.attr.startswith("_")
            and not node.attr.startswith("__")
        )
        if private and ast.unparse(node).split(".")[0] in bound:
            yield ast.unparse(node)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "getattr":
            place, name, *_ = map(ast.unparse, node.args)
            if name.startswith("'_") and place.split(".")[0] in bound:
                yield ast.unparse(node)


@pytest.mark.slow
def test_one_file_uses_insides_of_mlflow() -> None:
    users = {}
    for file in chain((ROOT / "cmtrack").rglob("*.py"), (ROOT / "integrations").rglob("*.py")):
        used = list(insides_of_mlflow(parsed(file)))
        if used:
            users[file.relative_to(ROOT).as_posix()] = used
    assert set(users) == INSIDE, {name: used for name, used in users.items() if name not in INSIDE}


@pytest.mark.parametrize(
    ("code", "used"),
    [
        ("from mlflow import MlflowClient, get_run", []),
        ("from mlflow.entities import Run", []),
        ("from mlflow.utils.uri import join", ["mlflow.utils.uri.join"]),
        ("import mlflow.store.artifact", ["mlflow.store.artifact"]),
        ("def f():\n    import_module('mlflow.server.app')", ["mlflow.server.app"]),
        ("import mlflow\nmlflow.tracking._model_registry", ["mlflow.tracking._model_registry"]),
        ("from mlflow.models import Model\nModel._load", ["Model._load"]),
        ("getattr(run.data, '_metric_objs', ())", ["getattr(run.data, '_metric_objs', ())"]),
    ],
)
def test_an_inside_of_mlflow_is_seen(code: str, used: list[str]) -> None:
    assert list(insides_of_mlflow(ast.parse(code))) == used


# -- the graph of the modules ----------------------------------------------------------------------------------------

LINTER = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
    "importlinter"
]


def upward_doors() -> dict[str, set[str]]:
    """Files that define a result, and the rooms above that it opens when it is asked for a view.

    The linter lists them as exceptions; nothing else goes up.
    """
    doors: dict[str, set[str]] = {}
    for contract in LINTER["contracts"]:
        for line in contract.get("ignore_imports", []):
            file, _, opened = line.partition(" -> ")
            doors.setdefault(file, set()).add(".".join(opened.split(".")[:2]))
    return doors


def statements(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """Import statements anywhere below a node, inside functions too; not those for type checkers only."""
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
        for child in node.orelse:
            yield from statements(child)
        return
    if isinstance(node, ast.Import | ast.ImportFrom):
        yield node
    for child in ast.iter_child_nodes(node):
        yield from statements(child)


def module_graph() -> dict[str, set[str]]:
    """The modules of both packages, each with those that it imports, at its beginning or later."""
    homes = (ROOT / "cmtrack", ROOT / "integrations" / "cmtrack_integrations")
    pairs = [(home.parent, file) for home in homes for file in home.rglob("*.py")]
    files = {
        ".".join(file.relative_to(parent).with_suffix("").parts): file for parent, file in pairs
    }
    known = {name.removesuffix(".__init__"): file for name, file in files.items()}
    graph = {}
    for name, file in known.items():
        package = name if file.name == "__init__.py" else name.rpartition(".")[0]
        found: set[str] = set()
        for node in statements(parsed(file)):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
                continue
            above = (
                package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            )
            base = ".".join([*above, *filter(None, [node.module])])
            found |= {
                f"{base}.{alias.name}" if f"{base}.{alias.name}" in known else base
                for alias in node.names
            }
        graph[name] = (found & set(known)) - {name}
    return graph


def circle(graph: dict[str, set[str]]) -> list[str]:
    """Modules of one circle; none where the graph has none."""
    done: set[str] = set()

    def walk(name: str, path: list[str]) -> list[str]:
        if name in path:
            return path[path.index(name) :]
        if name in done:
            return []
        for other in sorted(graph[name]):
            if found := walk(other, [*path, name]):
                return found
        done.add(name)
        return []

    return next(filter(None, (walk(name, []) for name in sorted(graph))), [])


@pytest.mark.slow
def test_no_circle_of_imports_but_for_the_doors() -> None:
    graph = module_graph()
    for file, rooms in upward_doors().items():
        opened = {
            name
            for name in graph[file]
            for room in rooms
            if name == room or name.startswith(f"{room}.")
        }
        # no dead door
        assert {room for room in rooms if any(name.startswith(room) for name in opened)} == rooms
        graph[file] -= opened
    assert circle(graph) == []


def test_a_circle_is_found() -> None:
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c"]
    assert circle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


def test_results_open_plots_reports_and_tracking_and_nothing_else() -> None:
    doors = upward_doors()
    assert 0 < len(doors) <= 9
    above = {"cmtrack.plots", "cmtrack.report", "cmtrack.tracking"}
    assert set().union(*doors.values()) <= above


@pytest.mark.slow
@pytest.mark.parametrize("room", ["families", "rough"])
def test_three_files_at_most_name_a_room_that_could_go(room: str) -> None:
    """Stubs, imports in functions and those for type checkers count; its page and its figures go with it."""
    named = set()
    for file in [*(ROOT / "cmtrack").rglob("*.py"), *(ROOT / "cmtrack").rglob("*.pyi")]:
        for node in ast.walk(parsed(file)):
            if isinstance(node, ast.ImportFrom):
                base = "." * node.level + (node.module or "")
                names = [base, *(f"{base}.{alias.name}" for alias in node.names)]
            else:
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if any(f"{name}.".startswith(f"cmtrack.{room}.") for name in names):
                named.add(file.relative_to(ROOT / "cmtrack"))
    outside = {path for path in named if path.parts[0] != room and not path.name.startswith(room)}
    assert len(outside) <= 3, outside


# -- how it is written -----------------------------------------------------------------------------------------------


QUESTIONS = ("What ", "Whether ", "How ", "Which ", "Who ", "Where ", "When ", "Why ")


@pytest.mark.slow
def test_a_first_line_of_a_docstring_is_no_question() -> None:
    found = []
    for file in chain((ROOT / "cmtrack").rglob("*.py"), (ROOT / "integrations").rglob("*.py")):
        for node in ast.walk(parsed(file)):
            documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
            if documented and (ast.get_docstring(node) or "").startswith(QUESTIONS):
                found.append(f"{file.relative_to(ROOT)}: {ast.get_docstring(node)}")
    assert not found
