"""What `docs/placement.md` says is what there is."""

from pathlib import Path

import pytest

from hostler.core.explain.alterations import ALTERATIONS
from hostler.core.placement.score import PARTS
from hostler.core.sentences import SENTENCES
from hostler.model.reason import Reason

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "placement.md").read_text(encoding="utf-8")
INFERRED = [
    f"C-{number:03}"
    for number in (
        *(4, 16, 17, 18, 32, 35, 39, 40, 41, 42, 44, 45, 52, 53, 54),
        *(62, 63, 75, 76, 77, 82, 91, 92, 100),
    )
]
FILTERS = list(Reason)[: list(Reason).index(Reason.SLOTS_FULL)]


@pytest.mark.parametrize("part", PARTS)
def test_every_part_of_a_score_is_published(part: str) -> None:
    assert f"`{part}`" in PAGE


def test_every_filter_is_published_in_its_order() -> None:
    table = PAGE[PAGE.index("## Why a node is refused") : PAGE.index("## Which node is best")]
    found = [table.find(f"`{reason.value}`") for reason in FILTERS]
    assert -1 not in found
    assert found == sorted(found)


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_is_published_with_what_to_do(reason: Reason) -> None:
    """The table is drawn from the sentences (`make gen`), so none can be missing or out of date."""
    meaning, advice = SENTENCES[reason]
    assert f"| `{reason}` | {meaning} | {advice} |" in PAGE


@pytest.mark.parametrize("name", ALTERATIONS)
def test_every_fact_that_can_be_altered_is_published(name: str) -> None:
    assert f"`{name}=" in PAGE


@pytest.mark.parametrize("clause", INFERRED)
def test_every_choice_that_was_left_to_us_is_published(clause: str) -> None:
    """Section 4 of spec/placement.md: each clause marked INFERRED is decided."""
    assert f"| {clause} | " in PAGE
