"""Writes the documents that are drawn from the code, or checks that they are up to date.

    python tools/gen.py            write them into docs/
    python tools/gen.py --check    write nothing; exit 1 and name the files that differ

Nobody edits these files by hand; the code is where they change.
"""

import argparse
import ast
import difflib
import importlib
import inspect
import json
import pkgutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import hostler.model
from hostler.base.lifecycle import Lifecycle

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
LIFECYCLES = DOCS / "lifecycles"
MARK = "<!-- Generated from the code by `make gen`; edit the code instead. -->"

AnyLifecycle = Lifecycle[Any, Any]


@dataclass(frozen=True)
class Found:
    """A lifecycle and the module that it stands in."""

    lifecycle: AnyLifecycle
    module: ModuleType


def main() -> int:
    """Write or check everything; the exit status is 0 when all is up to date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    is_check = parser.parse_args().check

    files = {
        **lifecycle_pages(),
        **api_document(),
        **cli_reference(),
        **config_schema(),
        **reason_table(),
        **metric_tables(),
        **event_table(),
    }
    stale = sorted(set(LIFECYCLES.glob("*.md")) - set(files))
    changed = [path for path, text in sorted(files.items()) if _read(path) != text]
    if is_check:
        for path in changed:
            print(_difference(path, files[path]))
        for path in stale:
            print(f"{path.relative_to(ROOT)} is drawn from nothing any more")
        return 1 if changed or stale else 0

    LIFECYCLES.mkdir(parents=True, exist_ok=True)
    for path in changed:
        path.write_text(files[path], encoding="utf-8")
        print(f"wrote {path.relative_to(ROOT)}")
    for path in stale:
        path.unlink()
        print(f"removed {path.relative_to(ROOT)}")
    return 0


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None


def _difference(path: Path, text: str) -> str:
    name = str(path.relative_to(ROOT))
    before = (_read(path) or "").splitlines()
    lines = difflib.unified_diff(before, text.splitlines(), name, "from the code", lineterm="", n=1)
    return "\n".join([*lines][:40])


# ------------------------------------------------------------------------------------ lifecycles


def find_lifecycles() -> list[Found]:
    """Find every lifecycle of the model, ordered by name."""
    found: dict[str, Found] = {}
    for info in pkgutil.walk_packages(hostler.model.__path__, "hostler.model."):
        module = importlib.import_module(info.name)
        for value in vars(module).values():
            if isinstance(value, Lifecycle) and _is_home(module, value):
                found[value.name] = Found(value, module)
    return [found[name] for name in sorted(found)]


def _is_home(module: ModuleType, lifecycle: AnyLifecycle) -> bool:
    """Say whether the lifecycle's phases are defined in this module, not imported into it."""
    return type(lifecycle.initial).__module__ == module.__name__


def lifecycle_pages() -> dict[Path, str]:
    """Draw one page for each lifecycle, and a list of them."""
    found = find_lifecycles()
    pages = {LIFECYCLES / f"{one.lifecycle.name}.md": _lifecycle_page(one) for one in found}
    listed = [_listed(one) for one in found]
    pages[LIFECYCLES / "README.md"] = "\n".join(
        [
            MARK,
            "",
            "# Lifecycles",
            "",
            "Each is a table in `hostler.model`. What is not in the table cannot happen:",
            "asking for it raises `IllegalTransition` and changes nothing.",
            "",
            *listed,
            "",
        ]
    )
    return pages


def _listed(found: Found) -> str:
    """Link to a page by the first words of its module's summary, before the colon."""
    noun, _, meaning = (found.module.__doc__ or "").strip().splitlines()[0].partition(": ")
    return f"- [{noun}]({found.lifecycle.name}.md): {meaning}"


def _lifecycle_page(found: Found) -> str:
    lifecycle = found.lifecycle
    phases = type(lifecycle.initial)
    meanings = _meanings(found.module, phases.__name__)
    return "\n".join(
        [
            MARK,
            "",
            f"# {lifecycle.name.capitalize()}",
            "",
            inspect.cleandoc(found.module.__doc__ or ""),
            "",
            "```mermaid",
            "stateDiagram-v2",
            *_arrows(lifecycle),
            "```",
            "",
            "| phase | meaning |",
            "| --- | --- |",
            *(f"| `{phase}` | {meanings.get(phase.name, '')} |" for phase in phases),
            "",
            f"Source: `{found.module.__name__}`.",
            "",
        ]
    )


def _arrows(lifecycle: AnyLifecycle) -> Iterator[str]:
    yield f"    [*] --> {lifecycle.initial}"
    for (phase, trigger), following in lifecycle.table.items():
        yield f"    {phase} --> {following}: {trigger}"
    for phase in type(lifecycle.initial):
        if phase in lifecycle.terminal:
            yield f"    {phase} --> [*]"


def _meanings(module: ModuleType, class_name: str) -> Mapping[str, str]:
    """Read the strings below the members of an enum, by member name."""
    tree = ast.parse(inspect.getsource(module))
    members = next(
        node.body
        for node in tree.body
        if isinstance(node, ast.ClassDef) and node.name == class_name
    )
    meanings: dict[str, str] = {}
    for member, below in pairwise(members):
        match member, below:
            case (
                ast.Assign(targets=[ast.Name(id=name)]),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                meanings[name] = " ".join(text.split())
            case _:
                pass
    return meanings


# ------------------------------------------------------------------------------ API, config, CLI


def api_document() -> dict[Path, str]:
    """Give the OpenAPI document that the server publishes."""
    create_openapi = importlib.import_module("hostler.api.app").create_openapi
    return {DOCS / "openapi.json": _json(create_openapi())}


def config_schema() -> dict[Path, str]:
    """Give the JSON Schema of hostler.yaml, for editors."""
    schema = importlib.import_module("hostler.wire.documents").config_schema
    return {DOCS / "hostler.schema.json": _json(schema())}


def _json(document: object) -> str:
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def reason_table() -> dict[Path, str]:
    """Put every reason with its sentences between the marks of the page on placement."""
    sentences = importlib.import_module("hostler.core.sentences").SENTENCES
    rows = [f"| `{reason}` | {means} | {todo} |" for reason, (means, todo) in sentences.items()]
    head = ["| reason | what it means | what to do |", "| --- | --- | --- |"]
    return _between("placement.md", "reasons", [*head, *rows])


def metric_tables() -> dict[Path, str]:
    """Put every metric between the marks of its page, section by section."""
    lines: list[str] = []
    for title, metrics in importlib.import_module("hostler.api.metrics.table").SECTIONS.items():
        lines += ["", f"## {title}", "", "| metric | kind | labels | what it says |"]
        lines += ["| --- | --- | --- | --- |"]
        for one in metrics:
            lines.append(
                f"| `{one.shown}` | {one.kind.value} | {', '.join(one.labels)} | {one.told} |"
            )
    return _between("metrics.md", "metrics", lines[1:])


def event_table() -> dict[Path, str]:
    """Put every event between the marks of its page, with what the code says along with it."""
    module = importlib.import_module("hostler.core.events")
    meanings, told = _meanings(module, "EventKind"), _emitted()
    lines = ["| event | what happened | about | with |", "| --- | --- | --- | --- |"]
    for kind in module.EventKind:
        about, data = told.get(kind.name, (set(), set()))
        cells = (", ".join(f"`{name}`" for name in sorted(names)) for names in (about, data))
        lines.append(f"| `{kind.value}` | {meanings.get(kind.name, '')} | {' | '.join(cells)} |")
    return _between("events.md", "events", lines)


def _emitted() -> dict[str, tuple[set[str], set[str]]]:
    """Read off the core's code which ids and values are told with each kind of event.

    Ids that a name stands for, and not a literal, are those that the function of that name, or the
    assignment to it in the same file, gives.
    """
    found: dict[str, tuple[set[str], set[str]]] = {}
    for path in sorted((ROOT / "src" / "hostler" / "core").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for call in ast.walk(tree):
            if not (isinstance(call, ast.Call) and getattr(call.func, "attr", "") == "emit"):
                continue
            kinds = {
                node.attr
                for node in ast.walk(call.args[0])
                if isinstance(node, ast.Attribute) and node.attr.isupper()
            }
            about = _ids_of(call.args[1], tree) if len(call.args) > 1 else set()
            for kind in kinds:
                nouns, data = found.setdefault(kind, (set(), set()))
                nouns |= about
                data |= {each.arg for each in call.keywords if each.arg}
    return found


def _ids_of(given: ast.AST, tree: ast.Module) -> set[str]:
    """Return the keys of the dictionaries in an expression, following names within the file."""
    keys = {
        key.value
        for node in ast.walk(given)
        if isinstance(node, ast.Dict)
        for key in node.keys
        if isinstance(key, ast.Constant) and isinstance(key.value, str)
    }
    names = {node.id for node in ast.walk(given) if isinstance(node, ast.Name)}
    for node in ast.walk(given):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            home = ROOT / "src" / "hostler" / "core" / f"{ast.unparse(node.func.value)}.py"
            if home.is_file():
                called = ast.Name(node.func.attr)
                keys |= _ids_of(called, ast.parse(home.read_text(encoding="utf-8")))
    for node in ast.walk(tree):
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=ast.Dict() as value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.Dict() as value)
            ) if name in names:
                keys |= _ids_of(value, ast.Module([], []))
            case ast.FunctionDef(name=name) if name in names:
                for inner in ast.walk(node):
                    if isinstance(inner, ast.Return) and isinstance(inner.value, ast.Dict):
                        keys |= _ids_of(inner.value, ast.Module([], []))
            case _:
                pass
    return keys


def _between(page: str, name: str, lines: list[str]) -> dict[Path, str]:
    """Put lines between the two marks of a page."""
    path = DOCS / page
    text = path.read_text(encoding="utf-8")
    begin = next(line for line in text.splitlines() if line.startswith(f"<!-- {name}: generated"))
    end = f"<!-- {name}: end -->"
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    return {path: before + begin + "\n\n" + "\n".join(lines) + "\n\n" + end + after}


def cli_reference() -> dict[Path, str]:
    """Describe every command with its arguments and options."""
    typer_main = importlib.import_module("typer.main")
    root = typer_main.get_command(importlib.import_module("hostler.cli.app").app)
    lines = [MARK, "", "# Command line", "", inspect.cleandoc(root.help or ""), ""]
    lines += _exit_codes()
    for path, command in _commands("hostler", root):
        lines += _command_section(path, command)
    return {DOCS / "cli.md": "\n".join(lines)}


def _exit_codes() -> list[str]:
    errors = importlib.import_module("hostler.cli.errors")
    meanings = _meanings(errors, "ExitCode")
    return [
        "## Exit codes",
        "",
        "An error is one message on standard error; for files a line for each problem, with its",
        "place. `hostler run` exits as the command did, and with 125 where Hostler failed.",
        "",
        "| | |",
        "| --- | --- |",
        *(f"| {code.value} | {meanings[code.name]} |" for code in errors.ExitCode),
        "",
    ]


def _commands(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    """Walk the tree of commands, giving those that do something."""
    children: Mapping[str, Any] = getattr(command, "commands", {})
    if not children or getattr(command, "invoke_without_command", False):
        yield path, command
    for name, child in children.items():
        if not child.hidden:
            yield from _commands(f"{path} {name}", child)


def _command_section(path: str, command: Any) -> list[str]:
    shown = [param for param in command.params if not getattr(param, "hidden", False)]
    arguments = [param for param in shown if param.param_type_name == "argument"]
    options = [param for param in shown if param.param_type_name == "option"]
    usage = " ".join([path, *(["[OPTIONS]"] if options else []), *map(_placeholder, arguments)])
    lines = [f"## `{path}`", "", "```text", usage, "```", ""]
    lines += [inspect.cleandoc(command.help or ""), ""]
    examples = [line.strip() for line in (command.epilog or "").splitlines()[1:]]
    if examples:
        lines += ["```console", *examples, "```", ""]
    if arguments or options:
        lines += ["| | |", "| --- | --- |"]
        lines += [f"| `{_placeholder(one)}` | {_help(one)} |" for one in arguments]
        lines += [f"| {_names(one)} | {_help(one)} |" for one in options]
        lines += [""]
    return lines


def _placeholder(argument: Any) -> str:
    name = argument.metavar or argument.name.upper()
    more = "..." if argument.nargs == -1 and not name.endswith("...") else ""
    return f"{name}{more}" if argument.required else f"[{name}]{more}"


def _names(option: Any) -> str:
    names = [*option.opts, *option.secondary_opts]
    placeholder = option.metavar or max(option.opts, key=len).lstrip("-").upper()
    return f"`{', '.join(names)}{'' if option.is_flag else f' {placeholder}'}`"


def _help(param: Any) -> str:
    told = " ".join((param.help or "").split()).replace("|", "\\|")
    default = param.default
    if default in (None, "", False, (), []) or callable(default) or param.required:
        return told
    return f"{told} Default: `{default}`." if told else f"Default: `{default}`."


if __name__ == "__main__":
    sys.exit(main())
