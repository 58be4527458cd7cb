"""The laws themselves: a check that cannot fail holds nothing."""

import ast
import subprocess
import sys

import pytest

from tests.tidy.sources import ROOT
from tests.tidy.test_habits import EXEMPTION, GOOD_EXEMPTION, catches_everything


@pytest.mark.parametrize(
    "room", ["base/x.py", "model/x.py", "core/x.py", "core/controllers/x.py", "agent/core/x.py"]
)
@pytest.mark.parametrize("line", ["import time", "import random", "from os import path"])
def test_a_pure_room_refuses_what_sees_the_outside(room: str, line: str) -> None:
    assert "TID251" in ruff_on(f"src/hostler/{room}", line)


@pytest.mark.parametrize("room", ["engine/x.py", "agent/x.py", "store/x.py"])
def test_the_shell_may_see_the_outside(room: str) -> None:
    assert "TID251" not in ruff_on(f"src/hostler/{room}", "import time")


def ruff_on(name: str, text: str) -> str:
    checked = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--no-cache", "--stdin-filename", name, "-"],
        cwd=ROOT,
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    return checked.stdout


@pytest.mark.parametrize(
    ("comment", "is_good"),
    [
        ("# noqa", False),
        ("# noqa: S104", False),
        ("# noqa: S104 - the operator asked for it", True),
        ("# noqa: S104, C901 - one case for each message", True),
        ("# type: ignore", False),
        ("# type: ignore[arg-type]", False),
        ("# type: ignore[arg-type]  # the stub is wrong about None", True),
    ],
)
def test_an_exemption_needs_code_and_reason(comment: str, *, is_good: bool) -> None:
    assert EXEMPTION.search(comment)
    assert bool(GOOD_EXEMPTION.search(comment)) is is_good


@pytest.mark.parametrize(
    ("clause", "does_catch"),
    [
        ("except: pass", True),
        ("except Exception: pass", True),
        ("except (OSError, BaseException): pass", True),
        ("except Exception: raise", False),
        ("except OSError: pass", False),
    ],
)
def test_a_handler_that_swallows_everything_is_seen(clause: str, *, does_catch: bool) -> None:
    tree = ast.parse(f"try:\n    go()\n{clause}")
    handler = next(node for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler))
    assert catches_everything(handler) is does_catch
