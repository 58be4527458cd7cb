"""Tables, data and colour: what people see and programs read."""

import io
import json

import pytest
import yaml

from hostler.cli.output import At, Column, OutputFormat, age, data_text, fields, table
from hostler.cli.terminal import is_colourful, shown
from hostler.wire.http import ShapeView

ROWS = [("n-1", "ready", 0), ("n-000002", "lost", 61_000)]
COLUMNS = (
    Column[tuple[str, str, int]]("NODE", lambda row: row[0]),
    Column[tuple[str, str, int]]("STATE", lambda row: row[1], is_state=True),
    Column[tuple[str, str, int]]("AGE", lambda row: At(row[2])),
    Column[tuple[str, str, int]]("ZONE", lambda row: None, is_wide=True),
)


def test_a_table_is_aligned_and_has_no_trailing_blanks() -> None:
    assert table(ROWS, COLUMNS, now_ms=300_000) == [
        "NODE       STATE   AGE",
        "n-1        ready   5m",
        "n-000002   lost    3m",
    ]


def test_a_wide_table_has_more_columns_and_a_dash_for_nothing() -> None:
    assert table(ROWS[:1], COLUMNS, now_ms=0, is_wide=True) == [
        "NODE   STATE   AGE   ZONE",
        "n-1    ready   0s    -",
    ]


def test_colour_marks_states_and_does_not_move_columns() -> None:
    lines = table(ROWS, COLUMNS, now_ms=300_000, is_colour=True)
    assert lines[1] == "n-1        \x1b[32mready\x1b[0m   5m"
    assert lines[2] == "n-000002   \x1b[31mlost\x1b[0m    3m"


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(0, "0s"), (119, "119s"), (120, "2m"), (10_799, "179m"), (10_800, "3h"), (172_800, "2d")],
)
def test_an_age_has_one_unit_and_two_figures_of_it(seconds: int, told: str) -> None:
    assert age(0, seconds * 1_000) == told


def test_an_age_in_the_future_is_nought_for_clocks_differ() -> None:
    assert age(5_000, 0) == "0s"


def test_fields_leave_out_what_has_no_value() -> None:
    told = fields([("Node", "n-1"), ("Zone", None), ("Seen", At(0))], now_ms=5_000)
    assert told == ["Node: n-1", "Seen: 5s ago"]


def test_what_comes_from_nodes_cannot_steer_a_terminal() -> None:
    assert shown("a\x1b[2Jb\nc") == "a?[2Jb c"


def test_json_and_yaml_say_the_same() -> None:
    view = ShapeView(capacity=10, memory_bytes=2**31)
    as_json = json.loads(data_text(view, OutputFormat.JSON))
    assert as_json == yaml.safe_load(data_text(view, OutputFormat.YAML))
    assert list(as_json) == ["capacity", "cores_milli", "memory_bytes", "capabilities", "devices"]


class _Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colour_is_for_terminals_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert is_colourful(_Screen())
    assert not is_colourful(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not is_colourful(_Screen())
