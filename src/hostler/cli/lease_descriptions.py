"""What `hostler describe` and `lease show` say of leases, and of what they leave on a node."""

from __future__ import annotations

from hostler.base.units import format_duration
from hostler.cli.output import At, fields
from hostler.cli.remote import now_ms
from hostler.cli.where_text import requirement_text
from hostler.wire.http import CleanUpView, LeaseView, TenantView


def lease_lines(view: LeaseView) -> list[str]:
    """Describe a lease."""
    granted, beat = view.granted_at_ms, view.heartbeat_at_ms
    goes, most = view.retiring_at_ms, view.retiring_at_ms_max
    is_held = view.phase == "held" and view.expires_at_ms is not None
    left_ms = max(0, (view.expires_at_ms or 0) - now_ms())
    why = f"{view.reason}: {view.reason_detail}" if view.reason_detail else view.reason
    return fields(
        [
            ("Lease", view.lease_id),
            ("Pool", view.pool),
            ("Phase", view.phase),
            ("Outcome", view.outcome),
            ("Because", view.outcome_detail),
            ("Waits for", why),
            ("In line", view.position),
            ("Node", view.node_id),
            ("Holder", view.holder),
            ("Fairness key", view.key),
            ("Needs", requirement_text(view.requires)),
            ("Labels", ", ".join(f"{name}={value}" for name, value in view.labels.items())),
            ("Priority", view.priority),
            ("Near to", _near_text(view)),
            ("Not on", ", ".join(view.excluded_node_ids)),
            ("Shares with", view.share.replace("_", " ")),
            ("Taken up", "yes" if view.is_acknowledged else "not yet"),
            ("Requested", At(view.requested_at_ms)),
            ("Granted", None if granted is None else At(granted)),
            ("Last heartbeat", None if beat is None else At(beat)),
            ("Expires in", format_duration(left_ms) if is_held else None),
            ("Its node goes", None if goes is None else At(goes)),
            ("Can be extended to", None if most is None or most == goes else At(most)),
            ("Epoch", view.epoch),
        ],
        now_ms=now_ms(),
    )


def clean_up_text(clean_up: CleanUpView | None) -> str | None:
    """Write how a clean-up went."""
    if clean_up is None:
        return None
    told = "done" if clean_up.is_success else f"FAILED: {clean_up.detail}"
    return f"{told} after {clean_up.lease_id}: {' '.join(clean_up.argv)}"


def tenant_text(tenant: TenantView | None) -> str | None:
    """Write who held a slot last."""
    if tenant is None:
        return None
    return f"{tenant.lease_id} of {tenant.key}, {tenant.outcome}"


def _near_text(view: LeaseView) -> str | None:
    if view.affinity_node_id is None:
        return None
    if view.is_affinity_required:
        return f"{view.affinity_node_id} and no other"
    waits = format_duration(view.affinity_wait_ms) if view.affinity_wait_ms else ""
    return f"{view.affinity_node_id}{f', for {waits}' if waits else ''}"
