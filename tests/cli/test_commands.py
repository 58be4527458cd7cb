"""Commands against a real server: what they print, and what they exit with."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from hostler.cli.app import app
from tests.cli.conftest import CONFIGURATION, Cli, ServerProcess, start_server

CHANNEL = """\
bundle: {name}
pool: studio
replicas: 2
jobs:
  - name: encoder
    band: gold
    requires: {{capacity: 4}}
    run: {{argv: [sleep, "60"]}}
"""


@pytest.fixture
def channel(tmp_path: Path, request: pytest.FixtureRequest) -> tuple[str, str]:
    """A bundle of this test's own, and the file that it stands in."""
    name = request.node.name.replace("_", "-").lower()[:40].strip("-")
    file = tmp_path / "channel.yaml"
    file.write_text(CHANNEL.format(name=name))
    return name, str(file)


def test_status_says_who_you_are(server: ServerProcess, cli: Cli) -> None:
    ended = cli("status")
    assert ended.code == 0
    assert f"Server:             {server.url}, version " in ended.out
    assert "You are:            local (admin), without a token: for development" in ended.out
    assert json.loads(cli("status", "-o", "json").out)["fleet_id"] == "golden"


def test_pools_are_a_table(server: ServerProcess, cli: Cli) -> None:
    assert cli("get", "pools").out == (
        "POOL      NODES   STARTING   READY   IDLE   WARM   SPARES   HELD   WAITING   GROWTH\n"
        "runners   0       0          0       0      0      0/0      0      0         ok\n"
        "studio    0       0          0       0      0      0/0      0      0         ok\n"
    )


@pytest.mark.parametrize("name", ["pools", "pool", "p"])
def test_a_kind_has_many_names(server: ServerProcess, cli: Cli, name: str) -> None:
    assert cli("get", name, "-o", "name").out == "pool/runners\npool/studio\n"


def test_what_a_name_says_goes_back_in(server: ServerProcess, cli: Cli) -> None:
    assert json.loads(cli("get", "pool/studio", "-o", "json").out)["name"] == "studio"
    assert cli("describe", "pool/studio").code == 0


def test_nothing_is_said_so_and_is_an_empty_list_for_programs(
    server: ServerProcess, cli: Cli
) -> None:
    ended = cli("get", "nodes")
    assert (ended.code, ended.out, ended.err) == (0, "", "there are no nodes\n")
    assert json.loads(cli("get", "nodes", "-o", "json").out) == {"items": []}


def test_the_life_of_a_bundle(server: ServerProcess, cli: Cli, channel: tuple[str, str]) -> None:
    name, file = channel
    planned = cli("plan", "-f", file)
    assert planned.code == 0
    assert [line.partition(" (revision")[0] for line in planned.out.splitlines()] == [
        f"bundle {name} would be created",
        f"  + {name}/encoder/0  waits: no_capacity: studio/own: no nodes, exhausted",
        f"  + {name}/encoder/1  waits: no_capacity: studio/own: no nodes, exhausted",
        "2 replicas, 2 would wait; nothing was changed",
    ]
    assert cli("get", "bundle", name).code == 3

    assert cli("apply", "-f", file).out == f"bundle/{name} created\n"
    assert cli("apply", "-f", file).out == f"bundle/{name} unchanged\n"
    shown = cli("get", "replicas", "--bundle", name).ageless.splitlines()
    assert shown[0].split() == (
        ["REPLICA", "ROLE", "BAND", "STATE", "NODE", "RESTARTS", "WAITS", "FOR", "SINCE"]
    )
    assert shown[1].split() == f"{name}/encoder/0 primary gold pending - 0 no_capacity AGE".split()

    explained = cli("explain", f"{name}/encoder/0")
    assert explained.out.startswith(f"replica {name}/encoder/0 is pending\n")
    assert "no_capacity" in explained.out
    waiting = cli("explain", "pending").out
    assert waiting.startswith("1 replica and no leases wait") or f"{name}/encoder/0" in waiting
    assert "What would help:" in waiting
    described = cli("describe", "bundle", name)
    assert "replica_placement_failed" in described.out or "bundle_submitted" in described.out
    assert cli("logs", f"{name}/encoder/0").err.startswith(
        f"hostler: {name}/encoder/0 has not run yet: it waits for no_capacity\n"
    )
    late = cli("apply", "-f", file, "--wait", "--timeout", "10ms")
    assert late.code == 1
    assert "hostler: not ready within 10ms" in late.err

    assert cli("delete", "bundle", name, "--wait").out == (
        f"bundle/{name} deleting\nbundle/{name} deleted\n"
    )
    assert cli("get", "bundle", name).code == 3
    remembered = cli("describe", "bundle", name)
    assert "is no more" in remembered.err
    assert [line.split()[0] for line in remembered.out.splitlines()[2:5]] == (
        ["active", "deleting", "deleted"]
    )


def test_what_the_server_refuses_is_told_with_lines(
    server: ServerProcess, cli: Cli, tmp_path: Path
) -> None:
    file = tmp_path / "channel.yaml"
    file.write_text(CHANNEL.format(name="stray").replace("pool: studio", "pool: studios"))
    for verb in ("plan", "apply"):
        ended = cli(verb, "-f", str(file))
        assert (ended.code, ended.out) == (2, "")
        assert ended.err.startswith(f"{file}:2:1: pool: ")
        assert ended.err.endswith("1 problem; nothing was changed\n")
    assert cli("get", "bundle", "stray").code == 3


@pytest.mark.parametrize(
    ("argv", "told", "hint"),
    [
        (["get", "pool", "studioo"], "there is no pool studioo", "did you mean studio?"),
        (["explain", "studioo"], "there is no bundle studioo", "did you mean studio?"),
        (["describe", "node", "n-1"], "there is no node n-1", "`hostler get nodes` lists them all"),
        (["cordon", "n-1"], "there is no node n-1", "`hostler get nodes` lists them all"),
        (["logs", "a-1"], "there is no allocation a-1", "`hostler get allocations` lists them all"),
        (["lease", "release", "l-9"], "there is no lease l-9", None),
        (["token", "revoke", "t-9"], "there is no token t-9", None),
    ],
    ids=lambda one: one[0] if isinstance(one, list) else "",
)
def test_an_unknown_id_is_told_with_near_ones(
    server: ServerProcess, cli: Cli, argv: list[str], told: str, hint: str | None
) -> None:
    ended = cli(*argv)
    assert (ended.code, ended.out) == (3, "")
    first, *rest = ended.err.splitlines()
    assert first == f"hostler: {told}"
    if hint is not None:
        assert rest == [f"hint: {hint}"]


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["get", "nodez"], "there is no kind of thing called nodez"),
        (["get", "pools", "--bundle", "b"], "pools cannot be narrowed with --bundle"),
        (["describe", "node"], "say which node"),
        (["delete", "node", "n-1"], "a node cannot be deleted"),
        (["start", "channel"], "channel is not BUNDLE/JOB, such as live-channel/encoder"),
        (["drain", "n-1", "--deadline", "soon"], "a duration looks like"),
        (["token", "create", "rack", "--role", "agent"], "an agent's token says what it joins"),
        (["--frob"], ""),
        (["frob"], ""),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, list) else "",
)
def test_a_bad_command_line_exits_with_2(
    server: ServerProcess, cli: Cli, argv: list[str], told: str
) -> None:
    ended = cli(*argv)
    assert (ended.code, ended.out) == (2, "")
    assert told in ended.err
    assert "Traceback" not in ended.err


def test_a_lease_that_cannot_be_had_is_refused(server: ServerProcess, cli: Cli) -> None:
    ended = cli("lease", "acquire", "--pool", "runners", "--timeout", "0")
    assert (ended.code, ended.out) == (4, "")
    assert ended.err.startswith("hostler: the lease was not granted: timed_out")
    assert "runners" in cli("lease", "list", "--all").out
    missing = cli("lease", "acquire", "--pool", "runnerz")
    assert missing.code == 3
    assert missing.err == "hostler: there is no pool runnerz\nhint: did you mean runners?\n"


def test_a_run_that_hostler_fails_exits_with_125(server: ServerProcess, cli: Cli) -> None:
    ended = cli("run", "--pool", "runners", "--timeout", "0", "--", "true")
    assert ended.code == 125
    assert ended.err.startswith("hostler: the lease was not granted: timed_out")
    assert cli("run", "--", "true").code == 2


def test_events_are_lines_or_json(server: ServerProcess, cli: Cli) -> None:
    lines = cli("events", "--kind", "configuration_applied").out.splitlines()
    assert len(lines) == 1
    assert "configuration_applied" in lines[0]
    event = json.loads(cli("events", "--kind", "configuration_applied", "-o", "json").out)
    assert event["kind"] == "configuration_applied"
    assert cli("events", "--about", "no-such-thing").out == ""


@pytest.mark.parametrize("argv", [["status"], ["get", "nodes"], ["events", "-f"], ["explain", "x"]])
def test_a_server_that_is_not_there_is_told_at_once(cli: Cli, argv: list[str]) -> None:
    ended = cli(*argv, "--server", "http://127.0.0.1:1")
    assert (ended.code, ended.out) == (6, "")
    assert ended.err.startswith("hostler: cannot reach the server at http://127.0.0.1:1: ")
    assert "is `hostler server` running there?" in ended.err
    assert len(ended.err.splitlines()) == 1


def test_a_run_without_a_server_exits_with_125(cli: Cli) -> None:
    ended = cli("run", "-p", "p", "-s", "http://127.0.0.1:1", "--", "true")
    assert ended.code == 125
    assert "cannot reach the server" in ended.err


def test_tokens_close_the_door(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = start_server(tmp_path, CONFIGURATION, "--ephemeral")
    monkeypatch.setenv("HOSTLER_SERVER", server.url)
    try:
        made = cli("token", "create", "alice", "--role", "admin")
        assert made.code == 0
        secret = made.out.strip()
        assert secret.startswith("ht_")
        assert secret not in made.err

        without = cli("get", "nodes")
        assert without.code == 5
        assert "hint: give a token in HOSTLER_TOKEN" in without.err
        monkeypatch.setenv("HOSTLER_TOKEN", "ht_wrong")
        wrong = cli("get", "nodes")
        assert (wrong.code, wrong.err.splitlines()[0]) == (
            5,
            "hostler: this token is not known here",
        )

        file = tmp_path / "admin.token"
        file.write_text(secret)
        admin = ("--token-file", str(file))
        viewer = cli("token", "create", "bob", "--role", "viewer", *admin).out.strip()
        monkeypatch.setenv("HOSTLER_TOKEN", viewer)
        assert cli("get", "pools").code == 0
        forbidden = cli("token", "create", "eve", "--role", "admin")
        assert forbidden.code == 5
        assert "this needs the role admin" in forbidden.err

        listed = cli("token", "list", *admin).out
        assert secret not in listed
        bob = next(line.split()[0] for line in listed.splitlines() if " bob " in line)
        assert cli("token", "revoke", bob, *admin).out == f"token/{bob} revoked\n"
        assert cli("get", "pools").code == 5
    finally:
        assert server.end() == 0


def test_help_is_grouped_and_quick(cli: Cli) -> None:
    alone = cli()
    assert alone.code == 0
    for panel in ("Start", "Work that stays", "Work that is short", "See what is and why"):
        assert panel in alone.out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_a_script(cli: Cli, shell: str) -> None:
    ended = cli("completion", shell)
    assert ended.code == 0
    assert "_HOSTLER_COMPLETE" in ended.out


def test_nothing_heavy_loads_before_a_command_runs() -> None:
    """`hostler --help` must be quick; what it costs is then Typer's and Rich's own start."""
    told = subprocess.run(
        [sys.executable, "-c", "import sys, hostler.cli.app; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    heavy = {"asyncio", "httpx", "litestar", "msgspec", "numpy", "sqlalchemy", "structlog", "yaml"}
    assert heavy.isdisjoint(told.stdout.split())


def test_every_command_teaches(cli: Cli) -> None:
    for path, command in walk_commands("hostler", get_command(app)):
        assert command.help, path
        assert "  $ " in (command.epilog or ""), f"{path} has no examples"


def walk_commands(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    """Give every command that does something."""
    children = getattr(command, "commands", {})
    if not children:
        yield path, command
    for name, child in children.items():
        yield from walk_commands(f"{path} {name}", child)
