"""What `lease acquire`, `lease hold` and `run` may ask of a node, read from the command line."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from hostler.cli.errors import CommandError, ExitCode

if TYPE_CHECKING:
    from hostler.wire.http import RequirementView


class ShareChoice(StrEnum):
    """With whom to share a node."""

    NONE = "none"
    SAME_KEY = "same-key"
    ANY = "any"


NeedsOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--needs",
        metavar="NAME=AMOUNT",
        help="What a slot must have: cores=2, memory=4GiB, capacity=3, or a capability: gpu=1;"
        " repeatable.",
    ),
]
SelectorOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--selector",
        metavar="RULES",
        help="Labels that its node must have: 'rack=a, zone in (x, y), gpu, !slow, tenant!=acme'.",
    ),
]
NearOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--near", metavar="NODE|LEASE", help="Prefer a node, or that of a former lease."),
]
NearWaitOption: TypeAlias = Annotated[
    str,
    typer.Option("--near-wait", metavar="DURATION", help="How long to wait for that node alone."),
]
NearOnlyOption: TypeAlias = Annotated[bool, typer.Option("--near-only", help="Take no other node.")]
ExcludeOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--exclude", metavar="NODE", help="Do not take this node; repeatable."),
]
ShareOption: TypeAlias = Annotated[
    ShareChoice, typer.Option("--share", help="With whom to share a node that has several slots.")
]
LabelOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--label", metavar="NAME=VALUE", help="For those who look later; repeatable."),
]


def wishes(
    *,
    needs: Sequence[str] | None = None,
    selector: str = "",
    near: str | None = None,
    near_wait: str = "0",
    near_only: bool = False,
    exclude: Sequence[str] | None = None,
    share: ShareChoice = ShareChoice.ANY,
    label: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Return the fields of an `AcquireRequest` that these options mean.

    Raises:
        CommandError: One of them cannot be read.
    """
    from hostler.base.units import duration_ms

    is_lease = near is not None and near.removeprefix("lease/").startswith("l-")
    return {
        "requires": requirement(needs or ()),
        "selector": selector,
        "affinity_node_id": None if near is None or is_lease else near.removeprefix("node/"),
        "affinity_lease_id": near.removeprefix("lease/") if near and is_lease else None,
        "affinity_wait_ms": 0 if near_wait == "0" else duration_ms(near_wait),
        "is_affinity_required": near_only,
        "excluded_node_ids": [each.removeprefix("node/") for each in exclude or ()],
        "share": share.value.replace("-", "_"),
        "labels": dict(_pair(each, "--label") for each in label or ()),
    }


def requirement(needs: Sequence[str]) -> RequirementView:
    """Read `cores=2`, `memory=4GiB`, `capacity=3` and capabilities such as `gpu=1` or `avx512`."""
    from hostler.base.units import cores_milli, size_bytes
    from hostler.wire.http import RequirementView, WishView

    fields: dict[str, int] = {}
    capabilities = []
    for need in needs:
        name, amount = _pair(need, "--needs") if "=" in need else (need, "1")
        match name:
            case "cores":
                fields["cores_milli"] = cores_milli(amount)
            case "memory":
                fields["memory_bytes"] = size_bytes(amount)
            case "capacity":
                fields["capacity"] = _count(amount, need)
            case _:
                capabilities.append(WishView(name=name, count=_count(amount, need)))
    return RequirementView(**fields, capabilities=capabilities)


def _count(amount: str, need: str) -> int:
    if not amount.isdecimal():
        raise CommandError(f"--needs {need}: {amount} is not a number", code=ExitCode.BAD_INPUT)
    return int(amount)


def _pair(text: str, option: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise CommandError(f"{option} {text} is not NAME=VALUE", code=ExitCode.BAD_INPUT)
    return name, value
