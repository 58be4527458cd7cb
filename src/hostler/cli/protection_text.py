"""Which losses a bundle would not survive, in lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from hostler.wire.http import BundleView, ProtectionView

_SHOWN_MAX: Final = 5


def protection_lines(view: ProtectionView | None) -> list[str]:
    """Say each loss that would leave replicas without a place; nothing when there is none."""
    if view is None or view.is_protected:
        return []
    lines = []
    for hurt in view.hurts:
        shown = [f"{key} ({reason})" for key, reason in list(hurt.replicas.items())[:_SHOWN_MAX]]
        more = len(hurt.replicas) - len(shown)
        told = ", ".join(shown) + (f" and {more} more" if more else "")
        kind = hurt.kind.replace("_", " ")
        lines.append(f"  ! not protected: without {kind} {hurt.name} no place for {told}")
    return lines


def protected_text(view: BundleView) -> str | None:
    """Say in few words whether a bundle survives any single loss."""
    found = view.protection
    if found is None:
        return None
    if found.is_protected:
        return "yes"
    told = [f"{hurt.kind.replace('_', ' ')} {hurt.name}" for hurt in found.hurts]
    return f"no: {', '.join(told[:_SHOWN_MAX]) or 'not placed'}"
