"""What `docs/placement.md` says is what there is."""

from pathlib import Path

import pytest

from hostler.core.placement.score import PARTS
from hostler.model.reason import Reason

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "placement.md").read_text(encoding="utf-8")
FILTERS = list(Reason)[: list(Reason).index(Reason.SLOTS_FULL)]


@pytest.mark.parametrize("part", PARTS)
def test_every_part_of_a_score_is_published(part: str) -> None:
    assert f"`{part}`" in PAGE


def test_every_filter_is_published_in_its_order() -> None:
    table = PAGE[PAGE.index("## Why a node is refused") : PAGE.index("## Which node is best")]
    found = [table.find(f"`{reason.value}`") for reason in FILTERS]
    assert -1 not in found
    assert found == sorted(found)
