"""`hostler get spend`: tables, data, CSV, and what it does not take."""

import csv
import io
import json

from tests.cli.conftest import Cli, ServerProcess


def test_spend_is_a_table_data_and_csv(server: ServerProcess, cli: Cli) -> None:
    assert cli("get", "spend").code == 0
    told = json.loads(cli("get", "spend", "-o", "json").out)
    assert sorted(told) == ["budgets", "items"]
    ended = cli("get", "spend", "--by", "offer,day", "--csv")
    head = next(csv.reader(io.StringIO(ended.out)))
    assert head == [
        *("day", "month", "pool", "tier", "offer", "key", "bundle"),
        *("node_seconds", "held_seconds", "cost", "currency"),
    ]


def test_what_is_wrong_is_said(server: ServerProcess, cli: Cli) -> None:
    assert "not colour" in cli("get", "spend", "--by", "colour").err
    assert "such as 2026-11-30" in cli("get", "spend", "--since", "yesterday").err
    assert "--by is for spend and the audit only" in cli("get", "nodes", "--by", "pool").err
    assert "spend has no names" in cli("get", "spend", "-o", "name").err
