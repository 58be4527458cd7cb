"""What the tidy tests look at: every Python file of the project, read and parsed once."""

from __future__ import annotations

import ast
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from io import StringIO
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "hostler"


@dataclass(frozen=True)
class Source:
    """One Python file."""

    path: Path

    @property
    def name(self) -> str:
        """Path from the top of the repository, as messages show it."""
        return self.path.relative_to(ROOT).as_posix()

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, self.name)

    @cached_property
    def module(self) -> str:
        """The dotted name by which this file is imported."""
        parts = self.path.relative_to(ROOT / "src").with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @cached_property
    def comments(self) -> tuple[tuple[int, str], ...]:
        """Every comment with its line number."""
        tokens = tokenize.generate_tokens(StringIO(self.text).readline)
        return tuple((t.start[0], t.string) for t in tokens if t.type == tokenize.COMMENT)

    def imports(self) -> Iterator[tuple[int, str]]:
        """Give every imported module with its line number, also those inside functions."""
        for node in ast.walk(self.tree):
            match node:
                case ast.Import(names=names):
                    yield from ((node.lineno, alias.name) for alias in names)
                case ast.ImportFrom(module=str(module)):
                    yield node.lineno, module
                case _:
                    pass

    def functions(self) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node

    def calls(self) -> Iterator[tuple[int, str, ast.Call]]:
        """Give every call of a plain or dotted name, with its line number."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call):
                name = dotted(node.func)
                if name:
                    yield node.lineno, name, node


def dotted(node: ast.expr) -> str:
    """Return `a.b.c` for such an expression, and nothing for any other."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=attr) if before := dotted(value):
            return f"{before}.{attr}"
        case _:
            return ""


@cache
def product() -> tuple[Source, ...]:
    """Every file of the package."""
    return _below(SOURCE)


@cache
def suite() -> tuple[Source, ...]:
    return _below(ROOT / "tests")


@cache
def everything() -> tuple[Source, ...]:
    """Product, tests, tools, benchmarks and examples."""
    rest = (_below(ROOT / folder) for folder in ("tools", "bench", "examples"))
    return (*product(), *suite(), *(source for sources in rest for source in sources))


def _below(folder: Path) -> tuple[Source, ...]:
    return tuple(Source(path) for path in sorted(folder.rglob("*.py")))


def told(offences: list[str], reason: str) -> str:
    """Put the reason of a rule above the places that break it."""
    return "\n".join([reason, *(f"  {offence}" for offence in offences)])
