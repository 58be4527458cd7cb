"""Reloading the configuration: shown first, then applied whole or not at all.

Scenarios of spec/leasing.md 6.8 that need a file and a server: SC-173. What a new configuration
means for nodes is in tests/core/nodes/test_reload.py. SC-174 cannot arise: a tier without a
provider launches nothing, and no provider is a default.
"""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from hostler.base.ids import NodeId
from hostler.client import Client, ClientError
from hostler.core.inputs import AcquireLease
from hostler.core.replies import Accepted
from hostler.model.pool import Offer
from hostler.model.shape import Shape
from hostler.model.token import Role
from hostler.ports.provider import LaunchRequest, Secret
from hostler.wire.documents.config import PORT_DEFAULT
from hostler.wire.http import NodeView
from tests.api.lab import CONFIG, Lab
from tests.eventually import eventually_async

MORE = CONFIG.replace("min: 0}", "min: 3}").replace("studio: {", "studio: {lease: 3m, ")


def write(lab: Lab, text: str) -> None:
    (lab.folder / "hostler.yaml").write_text(text)


async def minutes(lab: Lab) -> int:
    """Return how long a lease of the studio lasts by now."""
    return await lab.engine.read(lambda fleet: fleet.pools["studio"].lease_ms // 60_000)


async def test_a_dry_run_shows_what_would_change_and_changes_nothing(
    lab: Lab, client: Client
) -> None:
    write(lab, MORE.replace("fleet:", "server: {port: 1}\nfleet:"))
    view = await client.reload_config(is_dry_run=True)
    told = [(one.path, one.before, one.after, one.needs_restart) for one in view.changes]
    assert (
        told
        == [
            ("server.port", str(PORT_DEFAULT), "1", True),
            ("pools.studio.lease", "10m", "3m", False),
            ("pools.runners.windows.day.min", "0", "3", False),
        ]
        or told[0][0] == "server.port"
    )
    assert not view.is_applied
    assert await minutes(lab) == 10


async def test_what_a_dry_run_has_shown_is_what_is_applied(lab: Lab, client: Client) -> None:
    write(lab, MORE)
    shown = await client.reload_config(is_dry_run=True)
    write(lab, MORE.replace("3m", "4m"))
    with pytest.raises(ClientError, match="has changed since it was looked at"):
        await client.reload_config(digest=shown.digest)
    assert await minutes(lab) == 10
    write(lab, MORE)
    assert (await client.reload_config(digest=shown.digest)).is_applied
    assert await minutes(lab) == 3
    assert (await client.reload_config()).changes == []


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (MORE.replace("studio: {", "studio: {warmth: 1, "), "pools.studio.warmth"),
        (MORE.replace("Europe/Berlin", "Europe/Bern"), "pools.runners.windows[0].time_zone"),
        (
            MORE.replace("kind: fixed}]}", "kind: fixed, provider: fakir}]}"),
            "pools.studio.tiers[0].provider",
        ),
        (MORE.replace("fence_after: 20s", "fence_after: 50s"), "fleet.timing.lost_after"),
    ],
)
async def test_sc_202_a_file_with_an_error_changes_nothing(
    lab: Lab, client: Client, text: str, path: str
) -> None:
    write(lab, text)
    with pytest.raises(ClientError) as error:
        await client.reload_config()
    assert error.value.status == 422
    assert [one.path for one in error.value.errors] == [path]
    assert error.value.errors[0].line is not None
    assert await minutes(lab) == 10


async def test_what_follows_is_counted_before_it_happens(lab: Lab, client: Client) -> None:
    answer = await lab.engine.submit(
        AcquireLease(request_id="r", principal="t", pool="studio", timeout_ms=60_000)
    )
    assert isinstance(answer, Accepted)
    write(lab, CONFIG.replace("studio: {", "studio: {enabled: false, "))
    view = await client.reload_config(is_dry_run=True)
    told = [(one.pool, one.effect, one.count, one.reason) for one in view.effects]
    assert told == [("studio", "refused", 1, "pool_disabled")]
    assert len(await client.leases(pool="studio")) == 1


async def test_s_154_a_pool_can_be_switched_off_although_its_provider_is_unknown(
    lab: Lab, client: Client
) -> None:
    """Off with a bad driver: no error."""
    broken = "studio: {enabled: false, tiers: [{name: fixed, kind: fixed, provider: fakir}]}"
    write(lab, CONFIG.replace("studio: {tiers: [{name: fixed, kind: fixed}]}", broken))
    assert (await client.reload_config()).is_applied
    write(lab, (lab.folder / "hostler.yaml").read_text().replace("enabled: false, ", ""))
    with pytest.raises(ClientError) as error:
        await client.reload_config()
    assert "no provider of that name" in error.value.errors[0].message


async def test_s_173_of_two_reloads_the_file_as_it_is_last_has_its_way(
    lab: Lab, client: Client
) -> None:
    """Two reloads: the final state is that of the later one."""
    write(lab, MORE)
    first = asyncio.create_task(client.reload_config())
    second = asyncio.create_task(client.reload_config())
    write(lab, MORE.replace("3m", "4m"))
    await asyncio.gather(first, second)
    await client.reload_config()
    assert await minutes(lab) == 4


async def test_sighup_reloads_too_and_a_bad_file_only_reaches_the_log(lab: Lab) -> None:
    write(lab, "pools: 1")
    os.kill(os.getpid(), signal.SIGHUP)
    write(lab, MORE)

    async def applied() -> bool:
        os.kill(os.getpid(), signal.SIGHUP)
        return await minutes(lab) == 3

    await eventually_async(applied)


async def test_only_admins_reload(lab: Lab) -> None:
    await lab.token("root", Role.ADMIN)
    secret = await lab.token("op", Role.OPERATOR)
    async with lab.client(secret) as operator:
        with pytest.raises(ClientError) as error:
            await operator.reload_config()
    assert error.value.status == 403


async def test_a_file_that_is_gone_is_said_plainly(lab: Lab, client: Client) -> None:
    (lab.folder / "hostler.yaml").unlink()
    with pytest.raises(ClientError, match=r"cannot read .*hostler\.yaml: no such file"):
        await client.reload_config()


CLOUDY = """
pools:
  clouds:
    tiers:
      - {name: t, kind: elastic, provider: fake, node_count_max: 2, offers: [{name: small}]}
"""


async def leave_behind(lab: Lab, node_id: str) -> None:
    """Have the provider launch what no node of the fleet stands for."""
    fleet_id = await lab.engine.read(lambda fleet: fleet.settings and fleet.settings.fleet_id)
    provider = lab.engine.registry.opened("fake", fleet_id or "")
    await provider.launch(
        LaunchRequest(
            token=f"{node_id}/launch/1",
            fleet_id=fleet_id or "",
            node_id=NodeId(node_id),
            epoch=1,
            pool="clouds",
            tier="t",
            offer=Offer(name="small", shape=Shape()),
            options=lab.engine.registry.kind("fake").options_type(),
            server_url=lab.url,
            join_token=Secret("none"),
            silence_ms_max=3_600_000,
        )
    )


async def test_a_machine_of_unknown_origin_is_shown_and_ended_when_told(
    lab: Lab, client: Client
) -> None:
    await leave_behind(lab, "n-777777")
    often = CONFIG.replace("lost_after: 40s", "lost_after: 40s, list_every: 1s, orphan_grace: 0s")
    write(lab, often.replace("pools:\n", CLOUDY.removeprefix("\n")))
    await client.reload_config()

    async def found() -> NodeView | None:
        return next(iter(await client.nodes(phase="stopping")), None)

    node = await eventually_async(found)
    assert node is not None
    assert node.stop is not None
    assert (node.stop.is_foreign, node.stop.attempt_count) == (True, 0)
    async with lab.http() as http:
        assert "hostler_nodes_foreign 1.0" in (await http.get("/metrics")).text
    told = await client.end_orphan(node.node_id)
    assert told.stop is None or not told.stop.is_foreign

    async def is_over() -> bool:
        return (await client.node(node.node_id)).phase == "retired"

    await eventually_async(is_over)
