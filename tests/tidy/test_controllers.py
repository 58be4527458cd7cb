"""Every controller says at its top what it may touch and what it waits for."""

import ast

from tests.tidy.sources import Source, product, told

HEADINGS = ("Reads:", "Writes:", "Sends:", "Keeps:", "Waits on:")


def controllers() -> list[Source]:
    return [
        source
        for source in product()
        if source.module.startswith("hostler.core.controllers.") and source.path.stem[0] != "_"
    ]


def test_a_controller_says_what_it_touches() -> None:
    offences = []
    for source in controllers():
        docstring = ast.get_docstring(source.tree) or ""
        missing = [
            heading
            for heading in HEADINGS
            if not any(line.startswith(heading) for line in docstring.splitlines())
        ]
        if missing:
            offences.append(f"{source.name} lacks {', '.join(missing)}")
    assert not offences, told(
        offences,
        "whoever changes a controller must see at its top which records it reads and writes, which"
        " commands it sends, which invariants it keeps and which reasons it waits on",
    )


def test_a_controller_offers_reconcile() -> None:
    offences = [
        f"{source.name} offers {', '.join(names) or 'nothing'}"
        for source in controllers()
        if "reconcile" not in (names := public_functions(source))
    ]
    assert not offences, told(
        offences, "a controller is `reconcile(txn)`: it looks at state and acts through records"
    )


def public_functions(source: Source) -> list[str]:
    return [
        node.name
        for node in source.tree.body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
    ]
