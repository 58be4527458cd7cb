"""Reads documents: text or plain values in, a document or all of its problems out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import msgspec

from hostler.wire.documents.bundle import BundleDocument, JobConfigDocument
from hostler.wire.documents.check import Check, type_info
from hostler.wire.documents.config import ConfigDocument
from hostler.wire.documents.maintenance import MaintenanceDocument
from hostler.wire.documents.problem import DocumentProblem, DocumentRejected
from hostler.wire.documents.rules import rules_of
from hostler.wire.documents.tree import Plain, Tree, read_trees

D = TypeVar("D", bound=msgspec.Struct)


@dataclass(frozen=True)
class Reading(Generic[D]):
    """What came of reading one document.

    Attributes:
        document: The document, or `None` when it has problems.
        problems: Everything that is wrong, in the order of the text.
        source: The file's name, or empty.
        tree: What was read, with its positions.
    """

    document: D | None
    problems: tuple[DocumentProblem, ...]
    source: str = ""
    tree: Tree = field(default_factory=Tree, repr=False)

    def line_of(self, path: str) -> tuple[int, int] | None:
        """Return line and column of a path, or of the nearest thing around it.

        For problems that somebody else found, such as the server. `None` without text.
        """
        return self.tree.position(path)

    def placed(self, problems: Sequence[DocumentProblem]) -> DocumentRejected:
        """Make an error of problems that somebody else found in this document, with their lines."""
        return DocumentRejected([_placed(one, self.tree) for one in problems], self.source)

    def require(self) -> D:
        """Return the document.

        Raises:
            DocumentRejected: It has problems; they are all in the error.
        """
        if self.document is None:
            raise DocumentRejected(self.problems, self.source)
        return self.document


def read_job_config(text: str, source: str = "") -> Reading[JobConfigDocument]:
    """Read what a job works by, as `config` of a job has it. An empty file is an empty one."""
    return _reading(_only_tree(text), JobConfigDocument, source)


def read_maintenance(text: str, source: str = "") -> Reading[MaintenanceDocument]:
    """Read one maintenance, as `fleet.maintenance` has several."""
    return _reading(_only_tree(text), MaintenanceDocument, source)


def read_config(text: str, source: str = "") -> Reading[ConfigDocument]:
    """Read a `hostler.yaml`. An empty file is a fleet without pools."""
    return _reading(_only_tree(text), ConfigDocument, source)


def _only_tree(text: str) -> Tree:
    """Return the tree of a file that has one document, an empty one for an empty file."""
    trees = read_trees(text)
    tree = trees[0]
    if len(trees) > 1 and not tree.problems:
        tree.problems.append(
            DocumentProblem(
                path="",
                code="too_many_documents",
                message="one document only; what follows `---` would be ignored",
                line=(trees[1].positions.get("") or (None,))[0],
            )
        )
    if tree.value is None:
        tree.value = {}
    return tree


def read_bundles(text: str, source: str = "") -> list[Reading[BundleDocument]]:
    """Read the bundles of a file, which are separated by `---`. Empty documents are passed over."""
    trees = [tree for tree in read_trees(text) if tree.value is not None or tree.problems]
    if not trees:
        problem = DocumentProblem(path="", code="empty", message="there is no bundle here")
        trees = [Tree(problems=[problem])]
    readings = [_reading(tree, BundleDocument, source) for tree in trees]
    seen: set[str] = set()
    for index, reading in enumerate(readings):
        value = reading.tree.value
        name = value.get("bundle") if isinstance(value, dict) else None
        if not isinstance(name, str):
            continue
        if name in seen:
            readings[index] = _with_problem(reading, name)
        seen.add(name)
    return readings


def require_all(readings: Sequence[Reading[D]]) -> list[D]:
    """Return the documents of a file.

    Raises:
        DocumentRejected: Any of them has problems; the problems of all are in the error.
    """
    problems = [problem for reading in readings for problem in reading.problems]
    if problems:
        raise DocumentRejected(problems, readings[0].source)
    return [reading.require() for reading in readings]


def check_value(value: Plain, document: type[D]) -> Reading[D]:
    """Check a plain value, such as decoded JSON."""
    return _reading(Tree(value=value), document, "")


def _with_problem(reading: Reading[BundleDocument], name: str) -> Reading[BundleDocument]:
    problem = DocumentProblem(
        path="bundle", code="duplicate", message=f"there is a bundle named `{name}` above"
    )
    return Reading(
        None, (*reading.problems, _placed(problem, reading.tree)), reading.source, reading.tree
    )


def _reading(tree: Tree, document: type[D], source: str) -> Reading[D]:
    if tree.problems and tree.value is None:
        return Reading(None, tuple(tree.problems), source, tree)
    check = Check()
    fitted = check.fit(tree.value, type_info(document), "")
    found = [*tree.problems, *check.problems]
    found += rules_of(document, fitted)
    if not found:
        return Reading(msgspec.convert(fitted, document), (), source, tree)
    placed = [_placed(problem, tree) for problem in found]
    placed.sort(key=lambda problem: (problem.line or 0, problem.column or 0))
    return Reading(None, tuple(placed), source, tree)


def _placed(problem: DocumentProblem, tree: Tree) -> DocumentProblem:
    position = tree.position(problem.path)
    if problem.line is not None or position is None:
        return problem
    return msgspec.structs.replace(problem, line=position[0], column=position[1])
