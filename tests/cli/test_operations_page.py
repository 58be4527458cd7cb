"""Pages for operators: every command in them is one, every link leads to a heading."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer.main

from hostler.cli.app import app

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [
    page
    for page in ("operations.md", "metrics.md", "events.md", "coming-from.md")
    if (DOCS / page).is_file()
]
ROOT: Any = typer.main.get_command(app)


def commands(page: str) -> list[str]:
    """Every `hostler ...` of a page, in text and in blocks."""
    text = (DOCS / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^\$ (hostler .*?)(?:\s+#.*)?$", text, re.MULTILINE)
    return [*blocks, *re.findall(r"`(hostler [^`]+)`", text)]


def problem_of(line: str) -> str:
    """Say what is wrong with a command, or nothing."""
    words, command, at = shlex.split(line)[1:], ROOT, "hostler"
    while words and getattr(command, "commands", {}):
        name = words[0]
        if name not in command.commands:
            break
        command, at = command.commands[name], f"{at} {name}"
        words = words[1:]
    if command is ROOT and words:
        return f"there is no command {words[0]}"
    if getattr(command, "commands", {}) and words:
        return f"{at} has no command {words[0]}"
    known = {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
    unknown = [
        word for word in words if word.startswith("-") and word.partition("=")[0] not in known
    ]
    return f"{at} does not take {unknown}" if unknown else ""


@pytest.mark.parametrize("page", PAGES)
def test_every_command_of_a_page_is_one(page: str) -> None:
    found = commands(page)
    assert found
    wrong = {line: problem for line in found if (problem := problem_of(line))}
    assert not wrong


@pytest.mark.parametrize("page", PAGES)
def test_every_link_of_a_page_leads_to_a_heading(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    for target, anchor in re.findall(r"\]\(([a-z-]*(?:\.md)?)#([^)]+)\)", text):
        headings = re.findall(r"^#+ (.+)$", (DOCS / (target or page)).read_text(), re.MULTILINE)
        slugs = {re.sub(r"[^a-z0-9 -]", "", one.lower()).replace(" ", "-") for one in headings}
        assert anchor in slugs, (page, target, anchor)


def test_a_wrong_command_is_found() -> None:
    assert problem_of("hostler dance") == "there is no command dance"
    assert "does not take ['--sideways']" in problem_of("hostler drain n-1 --sideways")
    assert problem_of("hostler lease show l-000001 -o json") == ""
