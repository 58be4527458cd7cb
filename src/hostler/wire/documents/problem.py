"""What is wrong with a document, and where."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from hostler.base.errors import Rejected


class DocumentProblem(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to change."""

    path: str
    """Such as `pools.studio.tiers[0].kind`; empty for the document as a whole."""
    code: str
    message: str
    """What is wrong and what to change."""
    line: int | None = None
    """From 1; `None` when the document is not text."""
    column: int | None = None
    """From 1."""

    def told(self, source: str = "") -> str:
        """Write it the way compilers do: `hostler.yaml:12:5: pools.studio: ...`."""
        place = ":".join(str(part) for part in (source, self.line, self.column) if part)
        return ": ".join(part for part in (place, self.path, self.message) if part)


class DocumentRejected(Rejected):
    """A document has problems; all of them are told at once.

    Attributes:
        source: The file's name, or empty.
        problems: In the order of the text.
    """

    def __init__(self, problems: Sequence[DocumentProblem], source: str = "") -> None:
        self.source = source
        self.problems = tuple(problems)
        count = len(self.problems)
        super().__init__(
            "document_invalid",
            f"{count} {'problem' if count == 1 else 'problems'} in {source or 'the document'}",
        )

    def lines(self) -> list[str]:
        """Give one line for each problem."""
        return [problem.told(self.source) for problem in self.problems]
