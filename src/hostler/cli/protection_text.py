"""Which losses a bundle would not survive, and what bounds its moves, in lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from hostler.wire.http import BudgetStateView, BundleView, ProtectionView

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


def budgets_text(view: BundleView) -> str | None:
    """Write what binds the moves of a bundle's replicas, and how far it is used."""
    if view.disruption_budgets is None:
        return None
    return "; ".join(map(_budget_text, view.disruption_budgets)) or "one replica of a job at a time"


def _budget_text(budget: BudgetStateView) -> str:
    told = []
    if budget.unavailable_count_max is not None:
        told.append(f"{len(budget.away)} of {budget.unavailable_count_max} away")
    if budget.ready_count_min is not None:
        told.append(f"{budget.ready_count} ready, {budget.ready_count_min} must be")
    whose = f" of {budget.job}" if budget.job else " of the fleet"
    rest = "" if budget.is_in_force else " (not in force now)"
    return f"{budget.name}{whose}: {', '.join(told)}{rest}"
