"""Habits of the code: no forgotten note, no silent exemption, no swallowed error, no sleep."""

import ast
import re

from tests.tidy.sources import Source, dotted, everything, product, suite, told

# Where everything may be caught, and why. Each of these turns the unforeseen into something that
# is seen: an outcome, a problem document, a clean line. Anywhere else it would hide a defect.
CATCHES_EVERYTHING = {
    "src/hostler/api/deputies/deputies.py": "a provider's defect is logged, and its node is silent",
    "src/hostler/api/front.py": "whatever a handler raises becomes an answer, as in the framework",
    "src/hostler/cli/errors.py": "whatever a command raises becomes one message and an exit code",
    "src/hostler/embedded/listeners.py": "a program's listener is logged, and told what comes next",
    "src/hostler/engine/dispatch.py": "a provider's defect becomes the outcome of its command",
    "src/hostler/providers/registry.py": "a package that fails on import becomes one bad provider",
    "src/hostler/store/sqlite/threads.py": "what a call raises is raised where it is waited for",
    "src/hostler/workload.py": "what a job's own function raises is told in the job's log",
    "src/hostler/sim/history.py": "whatever escapes the product is told with its seed",
}

EXEMPTION = re.compile(r"#\s*(type:\s*ignore|noqa)")
GOOD_EXEMPTION = re.compile(
    r"#\s*(type:\s*ignore\[[\w-]+(,\s*[\w-]+)*\]|noqa:\s*[A-Z]+\d+(,\s*[A-Z]+\d+)*)"
    r"(\s*#?\s*(-|--|:|#|\u2014)?\s*)(?P<reason>\S.{6,})"
)


def test_a_note_to_come_back_has_an_issue() -> None:
    offences = [
        f"{source.name}:{line} {comment}"
        for source in everything()
        for line, comment in source.comments
        if re.search(r"\bTODO\b", comment) and not re.search(r"\bTODO\(#\d+\)", comment)
    ]
    assert not offences, told(offences, "what is left to do is found by its issue: TODO(#12)")


def test_nothing_known_to_be_broken_is_committed() -> None:
    offences = [
        f"{source.name}:{line} {comment}"
        for source in everything()
        for line, comment in source.comments
        if re.search(r"\b(FIXME|XXX|HACK)\b", comment)
    ]
    assert not offences, told(offences, "mend it now or file an issue and say TODO(#12)")


def test_an_exemption_names_its_code_and_its_reason() -> None:
    offences = [
        f"{source.name}:{line} {comment}"
        for source in everything()
        for line, comment in source.comments
        if EXEMPTION.search(comment) and not GOOD_EXEMPTION.search(comment)
    ]
    assert not offences, told(
        offences,
        "whoever reads an exemption must be able to judge it, and whoever breaks the rule"
        " elsewhere on the line must be told: `# noqa: S104 - the operator asked for it` or"
        " `# type: ignore[arg-type]  # the stub is wrong about None`",
    )


def test_the_product_checks_and_does_not_assert() -> None:
    offences = [
        f"{source.name}:{node.lineno}"
        for source in product()
        # The conformance suites are tests that we ship; pytest explains their assertions.
        if "_conformance" not in source.name
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Assert)
    ]
    assert not offences, told(
        offences, "`python -O` removes assert; hostler.base.errors.check stays on in production"
    )


def test_everything_is_caught_only_at_the_edges() -> None:
    found = {
        f"{source.name}:{handler.lineno}": source.name
        for source in product()
        for handler in ast.walk(source.tree)
        if isinstance(handler, ast.ExceptHandler) and catches_everything(handler)
    }
    offences = [place for place, name in found.items() if name not in CATCHES_EVERYTHING]
    assert not offences, told(
        offences,
        "catching every exception hides defects; catch what you can name. The edges that may are"
        " listed with their reasons in CATCHES_EVERYTHING",
    )
    unused = sorted(set(CATCHES_EVERYTHING) - set(found.values()))
    assert not unused, told(unused, "these no longer catch everything: take them off the list")


def catches_everything(handler: ast.ExceptHandler) -> bool:
    """Say whether a handler takes any exception and does not pass it on."""
    if handler.type is None:
        names = {"BaseException"}
    elif isinstance(handler.type, ast.Tuple):
        names = {dotted(part) for part in handler.type.elts}
    else:
        names = {dotted(handler.type)}
    if not names & {"Exception", "BaseException"}:
        return False
    last = handler.body[-1]
    return not (isinstance(last, ast.Raise) and last.exc is None)


def test_tests_do_not_sleep() -> None:
    offences = [
        f"{source.name}:{line} {name}"
        for source in suite()
        if source.name != "tests/eventually.py"
        for line, name, call in source.calls()
        if sleeps(source, name, call)
    ]
    assert not offences, told(
        offences,
        "a sleep is either too short on a busy machine or a waste on a quiet one: pass time in;"
        " with real processes, wait for what you expect with tests/eventually.py",
    )


def sleeps(source: Source, name: str, call: ast.Call) -> bool:
    """Say whether a call waits for time to pass; `sleep(0)` only lets others run."""
    if name not in {"sleep", "time.sleep", "asyncio.sleep", "anyio.sleep"}:
        return False
    if name == "sleep" and not any(module == "time" for _, module in source.imports()):
        return False
    match call.args:
        case [ast.Constant(value=0)]:
            return False
        case _:
            return True


def test_no_one_walks_a_folder_that_others_clear() -> None:
    """`Path.rglob` and `Path.glob("**")` raise in Python 3.11 when a folder goes as they walk."""
    offences = [
        f"{source.name}:{node.lineno} {ast.unparse(node)}"
        for source in product()
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call) and walks(node)
    ]
    assert not offences, told(offences, "use glob.glob, which passes over what is gone")


def walks(call: ast.Call) -> bool:
    """Say whether a call is `Path.rglob`, or `Path.glob` over any number of levels."""
    match call.func:
        case ast.Attribute(attr="rglob"):
            return True
        case ast.Attribute(attr="glob"):
            return "**" in ast.unparse(call)
        case _:
            return False
