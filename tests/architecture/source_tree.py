"""The repository as the architecture tests see it: which files there are, and what they say of themselves."""

import ast
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
GOLDEN = Path(__file__).parent / "golden"


@dataclass(frozen=True)
class SourceFile:
    """One Python file."""

    path: Path

    @property
    def name(self) -> str:
        """Its path from the repository's root."""
        return self.path.relative_to(REPOSITORY).as_posix()

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, self.name)

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Every node of its tree."""
        return tuple(ast.walk(self.tree))

    @property
    def module(self) -> str:
        """The dotted name that it is imported by."""
        parts = list(self.path.relative_to(REPOSITORY).with_suffix("").parts)
        if parts[0] in ("src", "tests"):
            parts = parts[1:]
        if parts[-1] == "__init__":
            parts = parts[:-1]
        return ".".join(parts)

    def functions(self) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
        """Yield every function and method, inner ones too."""
        statements: list[ast.AST] = [self.tree]
        while statements:  # an expression holds no function that has a name
            statement = statements.pop()
            if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
                yield statement
            for block in ("body", "orelse", "finalbody", "handlers", "cases"):
                statements += getattr(statement, block, ())

    def imports(self) -> Iterator[str]:
        """Yield the dotted name of each module, and of each thing taken from one, that it imports."""
        for node in self.nodes:
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module is not None and not node.level:
                yield node.module
                yield from (f"{node.module}.{alias.name}" for alias in node.names)

    def modules_named(self) -> Iterator[str]:
        """Yield each module that a text names for a later import, as `package.module` or `package.module:thing`."""
        for node in self.nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value.partition(":")[0]


@cache
def repository_files() -> tuple[Path, ...]:
    """Return every file that is, or is about to be, under version control."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=REPOSITORY, check=True, capture_output=True,
    ).stdout.decode()
    return tuple(path for name in sorted(listed.split("\0")) if name and (path := REPOSITORY / name).is_file())


@cache
def _source_file(path: Path) -> SourceFile:
    return SourceFile(path)  # one for each, since it remembers its tree


@cache
def python_files(*folders: str) -> tuple[SourceFile, ...]:
    """Return the Python files beneath `folders`."""
    return tuple(
        _source_file(path) for path in repository_files()
        if path.suffix == ".py" and path.relative_to(REPOSITORY).as_posix().startswith(folders)
    )


def product_files() -> tuple[SourceFile, ...]:
    """Return the Python files that are shipped."""
    return python_files("src/", "replay/")


def all_files() -> tuple[SourceFile, ...]:
    """Return the Python files of the product, its tests, pages and measurements."""
    return python_files("src/", "replay/", "tests/", "docs/", "benchmarks/")


def golden_lines(name: str) -> list[str]:
    """Return the lines of a golden list, in order."""
    return (GOLDEN / name).read_text(encoding="utf-8").split()
