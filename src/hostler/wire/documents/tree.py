"""YAML text as plain values, with the line and column of everything in it.

YAML 1.2's core schema: only `true` and `false` are booleans, `012` and `12:30` are not numbers in
disguise, so `country: no` and `at: 12:30` mean what they look like. Numbers remember how they were
written (`1.10`). Keys that stand twice, anchors that hold themselves and documents that would
unfold beyond reason are problems, not surprises.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import yaml

from hostler.wire.documents.problem import DocumentProblem

Plain: TypeAlias = "bool | int | float | str | list[Plain] | dict[str, Plain] | None"

NODE_COUNT_MAX: Final = 100_000
"""Values in one file with its aliases unfolded. A bundle of 50 jobs has about 2,000; a file of a
few lines of nested aliases could have billions."""

DEPTH_MAX: Final = 50
"""Nesting; the deepest document of ours has 8."""


class WrittenInt(int):
    """A whole number that remembers its text."""

    text: str


class WrittenFloat(float):
    """A number that remembers its text."""

    text: str


@dataclass
class Tree:
    """One YAML document.

    Attributes:
        value: The plain value; `None` when the document is empty or broken.
        positions: Line and column, from 1, by path.
        problems: What was wrong with the text itself.
    """

    value: Plain = None
    positions: dict[str, tuple[int, int]] = field(default_factory=dict)
    problems: list[DocumentProblem] = field(default_factory=list)

    def position(self, path: str) -> tuple[int, int] | None:
        """Return where a path stands, or where the nearest thing around it does."""
        while path not in self.positions:
            if not path:
                return None
            path = parent_path(path)
        return self.positions[path]


def child_path(path: str, step: str | int) -> str:
    """Return the path of a member: `jobs[0].name`."""
    if isinstance(step, int):
        return f"{path}[{step}]"
    return f"{path}.{step}" if path else step


def parent_path(path: str) -> str:
    """Return the path of what a path stands in."""
    return path[: max(path.rfind("."), path.rfind("["), 0)]


class _Loader(yaml.SafeLoader):
    """Resolves plain scalars by the core schema of YAML 1.2.2, section 10.3.2."""

    yaml_implicit_resolvers = {}


for _tag, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", [*"~nN", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", list("-+0123456789")),
    (
        "float",
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?",
        list("-+.0123456789"),
    ),
    ("merge", r"<<", ["<"]),
):
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}", re.compile(rf"^(?:{_pattern})$"), _first
    )


_TAGS: Final = frozenset(
    f"tag:yaml.org,2002:{name}" for name in ("map", "seq", "str", "null", "bool", "int", "float")
)


def read_trees(text: str) -> list[Tree]:
    """Read all documents of a YAML text; one that is broken has problems and ends the list."""
    trees: list[Tree] = []
    try:
        loader = _Loader(text)
        while loader.check_node():
            node = loader.get_node()
            if node is not None:
                trees.append(_Unfolding().run(node))
    except yaml.YAMLError as error:
        trees.append(Tree(problems=[_syntax_problem(error)]))
    except RecursionError:
        trees.append(Tree(problems=[_problem(None, "", "yaml_too_deep", "nested too deeply")]))
    return trees or [Tree()]


def _syntax_problem(error: yaml.YAMLError) -> DocumentProblem:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    told = getattr(error, "problem", None) or str(error).splitlines()[0]
    context = getattr(error, "context", None)
    line, column = (mark.line + 1, mark.column + 1) if mark else (None, None)
    message = f"not valid YAML: {told}" + (f" ({context})" if context else "")
    if "'\\t'" in message:
        message += "; indent with spaces, not tabs"
    return DocumentProblem(path="", code="yaml_syntax", message=message, line=line, column=column)


def _problem(node: yaml.Node | None, path: str, code: str, message: str) -> DocumentProblem:
    mark = node.start_mark if node is not None else None
    return DocumentProblem(
        path=path,
        code=code,
        message=message,
        line=mark.line + 1 if mark else None,
        column=mark.column + 1 if mark else None,
    )


class _Unfolding:
    """One walk over the nodes of a document."""

    def __init__(self) -> None:
        self._tree = Tree()
        self._count = 0
        self._around: list[int] = []

    def run(self, node: yaml.Node) -> Tree:
        self._tree.value = self._value(node, "")
        return self._tree

    def _value(self, node: yaml.Node, path: str) -> Plain:
        self._tree.positions.setdefault(path, _position(node))
        self._count += 1
        if self._count > NODE_COUNT_MAX:
            if self._count == NODE_COUNT_MAX + 1:
                self._tell(node, path, "yaml_too_large", "too many values in one document")
            return None
        if node.tag not in _TAGS:
            self._tell(node, path, "yaml_tag", f"the tag {node.tag} means nothing here; remove it")
            return None
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        if id(node) in self._around:
            self._tell(node, path, "yaml_cycle", "an anchor holds itself")
            return None
        if len(self._around) >= DEPTH_MAX:
            self._tell(node, path, "yaml_too_deep", "nested too deeply")
            return None
        self._around.append(id(node))
        try:
            if isinstance(node, yaml.SequenceNode):
                return [
                    self._value(item, child_path(path, index))
                    for index, item in enumerate(node.value)
                ]
            return self._mapping(node, path)
        finally:
            self._around.pop()

    def _scalar(self, node: yaml.ScalarNode, path: str) -> Plain:
        try:
            return _scalar(node)
        except ValueError:
            self._tell(node, path, "yaml_tag", f"`{node.value}` is not what its tag says")
            return None

    def _mapping(self, node: yaml.Node, path: str) -> dict[str, Plain]:
        own: dict[str, Plain] = {}
        merged: list[yaml.Node] = []
        for key, value in node.value:
            if key.tag == "tag:yaml.org,2002:merge":
                merged += value.value if isinstance(value, yaml.SequenceNode) else [value]
                continue
            if not isinstance(key, yaml.ScalarNode):
                self._tell(key, path, "yaml_bad_key", "a key is a plain word")
                continue
            name = key.value
            inner = child_path(path, name)
            if name in own:
                first_line, _ = self._tree.positions[inner]
                self._tell(
                    key,
                    inner,
                    "duplicate_key",
                    f"`{name}` stands here twice, first on line {first_line}; remove one",
                )
                continue
            self._tree.positions[inner] = _position(key)
            own[name] = self._value(value, inner)
        for other in merged:
            if not isinstance(other, yaml.MappingNode):
                self._tell(other, path, "yaml_bad_merge", "`<<` takes a mapping or a list of them")
                continue
            for name, value in self._merge(other, path).items():
                own.setdefault(name, value)
        return own

    def _merge(self, node: yaml.Node, path: str) -> dict[str, Plain]:
        value = self._value(node, path)
        return value if isinstance(value, dict) else {}

    def _tell(self, node: yaml.Node, path: str, code: str, message: str) -> None:
        self._tree.problems.append(_problem(node, path, code, message))


def _position(node: yaml.Node) -> tuple[int, int]:
    return node.start_mark.line + 1, node.start_mark.column + 1


def _scalar(node: yaml.ScalarNode) -> Plain:
    text: str = node.value
    match node.tag.rpartition(":")[2]:
        case "null":
            return None
        case "bool":
            return text.lower() == "true"
        case "int":
            base = {"0o": 8, "0x": 16}.get(text[:2].lower(), 10)
            whole = WrittenInt(text, base) if base != 10 else WrittenInt(text)
            whole.text = text
            return whole
        case "float":
            number = WrittenFloat(text)
            number.text = text
            return number
        case _:
            return text
