"""`hostler get audit`: who, what, from where, since when; as a table and as data."""

import json

from tests.cli.conftest import Cli, ServerProcess


def test_the_audit_is_a_table_and_data(server: ServerProcess, cli: Cli) -> None:
    assert cli("token", "create", "watcher", "--role", "viewer").code == 0
    table = cli("get", "audit", "--by", "local", "--since", "1h").out
    assert table.splitlines()[0].split() == ["AT", "BY", "FROM", "WHAT", "ABOUT", "WITH"]
    assert "create_token" in table
    assert "name=watcher role=viewer" in table
    told = json.loads(cli("get", "audit", "--since", "2026-01-01", "-o", "json").out)
    last = told["items"][-1]
    assert (last["action"], last["remote"]) == ("create_token", "127.0.0.1")
    token_id = last["about"]["token"]
    assert "watcher" in cli("get", "audit", "--subject", token_id).out
    assert cli("get", "audit", "--subject", token_id, "-o", "name").out.startswith("audit/u-")
    assert "no entry is such" in cli("get", "audit", "--by", "nobody").err


def test_what_it_does_not_take_is_said(server: ServerProcess, cli: Cli) -> None:
    assert "how long ago (2h)" in cli("get", "audit", "--since", "lately").err
    assert "--subject is for the audit only" in cli("get", "nodes", "--subject", "x").err
    assert "--csv is for spend only" in cli("get", "audit", "--csv").err
