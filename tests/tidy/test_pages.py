"""Pages that people look things up in have everything: each event, said in a sentence, and told."""

import ast

from hostler.core.events import EventKind
from tests.tidy.sources import ROOT, product, told


def test_every_event_is_documented_with_what_it_is_about() -> None:
    page = (ROOT / "docs" / "events.md").read_text(encoding="utf-8")
    rows = {line.split("|")[1].strip(" `"): line for line in page.splitlines() if line[:3] == "| `"}
    silent = [
        kind.value for kind in EventKind if not rows.get(kind.value, "| |  ").split("|")[2].strip()
    ]
    assert not silent, told(silent, "an event has a sentence below its name in core/events.py")


def test_every_event_happens() -> None:
    used = {
        node.attr
        for source in product()
        if source.module.startswith("hostler.core.")
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "EventKind"
    }
    idle = [kind.name for kind in EventKind if kind.name not in used]
    assert not idle, told(idle, "an event that nothing tells is a promise that nobody keeps")
