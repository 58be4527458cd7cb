"""Who may import what, where import contracts and banned members do not reach."""

import ast
import sys

from tests.tidy.sources import SOURCE, Source, product, told

PURE_ROOMS = ("hostler.base", "hostler.model", "hostler.core", "hostler.agent.core")

# Standard library that neither sees nor touches the outside. A pure room gets another only after
# somebody has thought about clocks, randomness, files and hash seeds.
PURE_STANDARD_LIBRARY = frozenset(
    {
        "__future__",
        "abc",
        "base64",
        "bisect",
        "collections",
        "contextlib",
        "copy",
        "dataclasses",
        "datetime",
        "decimal",
        "enum",
        "fractions",
        "functools",
        "graphlib",
        "hashlib",
        "heapq",
        "hmac",
        "itertools",
        "json",
        "math",
        "operator",
        "re",
        "string",
        "struct",
        "types",
        "typing",
        "zoneinfo",
    }
)


def is_in(module: str, room: str) -> bool:
    return module == room or module.startswith(f"{room}.")


def pure_sources() -> list[Source]:
    return [source for source in product() if any(is_in(source.module, r) for r in PURE_ROOMS)]


def may_import(source: Source, imported: str) -> bool:
    top = imported.partition(".")[0]
    if top == "hostler":
        return not is_in(source.module, "hostler.agent.core") or any(
            is_in(imported, room) for room in ("hostler.base", "hostler.wire", "hostler.agent.core")
        )
    if top == "numpy":
        return is_in(source.module, "hostler.core.placement")
    return top == "msgspec" or top in PURE_STANDARD_LIBRARY


def test_the_pure_rooms_import_nothing_that_sees_the_outside() -> None:
    offences = [
        f"{source.name}:{line} imports {imported}"
        for source in pure_sources()
        for line, imported in source.imports()
        if not may_import(source, imported)
    ]
    assert not offences, told(
        offences,
        "base, model, core and agent/core decide, and the shell acts: the same code runs in the"
        " server, embedded and in the simulator, and a journal replays to the same bytes. They know"
        " msgspec, a short list of the standard library (here, in PURE_STANDARD_LIBRARY), numpy in"
        " core/placement, and nothing else; agent/core knows only base and wire of ours.",
    )


def test_the_short_list_names_only_the_standard_library() -> None:
    assert sys.stdlib_module_names >= PURE_STANDARD_LIBRARY


def test_a_folder_of_modules_is_a_package() -> None:
    offences = sorted(
        {
            source.path.parent.relative_to(SOURCE.parent).as_posix()
            for source in product()
            if not (source.path.parent / "__init__.py").is_file()
        }
    )
    assert not offences, told(offences, "type checker and import contracts see only packages")


def test_no_room_is_empty() -> None:
    rooms = [source.path.parent for source in product() if source.path.name == "__init__.py"]
    offences = [
        room.relative_to(SOURCE.parent).as_posix()
        for room in rooms
        if not any(path.name != "__init__.py" for path in room.rglob("*.py"))
        and not any(
            isinstance(node, ast.FunctionDef | ast.ClassDef)
            for node in ast.parse((room / "__init__.py").read_text(encoding="utf-8")).body
        )
    ]
    assert not offences, told(
        offences, "a room is made with its first inhabitant; an empty one only promises"
    )
