"""The documents keep up with the code: glossary, fragments of the changelog, links, decisions."""

import ast
import re
from pathlib import Path

from tests.tidy.sources import ROOT, Source, product, told

DOCS = ROOT / "docs"
LIFECYCLE_SIDES = ("Phase", "Trigger")

FRAGMENT = re.compile(r"\d+-[a-z0-9-]+\.(added|changed|removed|fixed|security)\.md")
FRAGMENT_CHARACTERS_MAX = 600
LINK = re.compile(r"\[[^\]]*\]\((?!https?:|mailto:|#)([^)#\s]+)[^)]*\)")


def glossary_words() -> set[str]:
    """The first cells of the glossary's tables, in lower case and without ornament."""
    rows = [
        line.split("|")[1]
        for line in (DOCS / "glossary.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("|")
    ]
    return {word.strip(" `").lower() for cell in rows for word in cell.split(",")}


def public_classes(source: Source) -> list[str]:
    return [
        node.name
        for node in source.tree.body
        if isinstance(node, ast.ClassDef)
        and not node.name.startswith("_")
        and not node.name.endswith(LIFECYCLE_SIDES)
    ]


def markdown_files() -> list[Path]:
    folders = [*DOCS.rglob("*.md"), *(ROOT / "changes.d").glob("*.md")]
    return sorted([*ROOT.glob("*.md"), *folders])


def test_every_noun_of_the_model_is_in_the_glossary() -> None:
    words = glossary_words()
    offences = [
        f"{source.name}: {name}"
        for source in product()
        if source.module.startswith("hostler.model.")
        for name in public_classes(source)
        if name.lower() not in words
    ]
    assert not offences, told(
        offences,
        "one word, one meaning: a new noun gets its line in docs/glossary.md before the code uses"
        " it, so that nobody gives a second meaning to a taken word",
    )


def test_every_change_note_has_the_shape_that_a_release_folds() -> None:
    fragments = [
        path for path in sorted((ROOT / "changes.d").iterdir()) if path.name != "README.md"
    ]
    offences = [
        f"{path.relative_to(ROOT)}: {wrong}" for path in fragments if (wrong := misshapen(path))
    ]
    assert not offences, told(
        offences,
        "a fragment is changes.d/ISSUE-words.KIND.md with KIND added, changed, removed, fixed or"
        " security; it says in a few whole sentences what a user will notice",
    )


def misshapen(path: Path) -> str:
    """Say what is wrong with a fragment, or nothing."""
    if not FRAGMENT.fullmatch(path.name):
        return "the name is not ISSUE-words.KIND.md"
    text = path.read_text(encoding="utf-8").strip()
    if len(text) > FRAGMENT_CHARACTERS_MAX:
        return f"longer than {FRAGMENT_CHARACTERS_MAX} characters: say less, link to docs/"
    if not text[:1].isupper() and text[:1] != "`":
        return "does not begin with a capital letter"
    if not text.endswith("."):
        return "does not end with a full stop"
    return ""


def test_links_between_documents_lead_somewhere() -> None:
    offences = [
        f"{path.relative_to(ROOT)}: {target}"
        for path in markdown_files()
        for target in LINK.findall(path.read_text(encoding="utf-8"))
        if not (path.parent / target).exists()
    ]
    assert not offences, told(offences, "a link that leads nowhere sends a newcomer away")


def test_every_decision_says_context_decision_and_consequences() -> None:
    offences = []
    for path in sorted((DOCS / "decisions").glob("[0-9]*.md")):
        headings = re.findall(r"^## (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
        if headings[:3] != ["Context", "Decision", "Consequences"]:
            offences.append(f"{path.relative_to(ROOT)} has {headings}")
    assert not offences, told(
        offences, "a decision without its reasons is made again by the next who wonders"
    )


def test_every_decision_is_in_the_list() -> None:
    listed = (DOCS / "decisions" / "README.md").read_text(encoding="utf-8")
    offences = [
        path.name
        for path in sorted((DOCS / "decisions").glob("[0-9]*.md"))
        if path.name not in listed
    ]
    assert not offences, told(offences, "docs/decisions/README.md is how they are found")
