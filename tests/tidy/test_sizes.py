"""Sizes: a file or function that outgrows these has a second noun in it."""

import ast

from tests.tidy.sources import product, told

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 80


def test_a_source_file_stays_readable_in_one_sitting() -> None:
    offences = [
        f"{source.name} has {len(source.lines)} lines"
        for source in product()
        if len(source.lines) > FILE_LINES_MAX
    ]
    assert not offences, told(
        offences,
        f"a source file is near 300 lines and never above {FILE_LINES_MAX}: look for the second"
        " noun in its summary line and give it a file of its own",
    )


def test_a_function_fits_on_one_screen() -> None:
    offences = [
        f"{source.name}:{function.lineno} {function.name} has {lines} lines"
        for source in product()
        for function in source.functions()
        if (lines := line_count(function)) > FUNCTION_LINES_MAX
    ]
    assert not offences, told(
        offences,
        f"a function is below 60 lines and never above {FUNCTION_LINES_MAX}: name its steps and"
        " let it read as a list of them",
    )


def line_count(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1
