"""The agent's lifecycle of an allocation: every phase by every trigger."""

import pytest

from hostler.agent.core.state import ALLOCATION_LIFECYCLE, AllocationTrigger
from hostler.base.lifecycle import IllegalTransition
from hostler.wire.work import AllocationPhase


@pytest.mark.parametrize("phase", list(AllocationPhase))
@pytest.mark.parametrize("trigger", list(AllocationTrigger))
def test_only_arrows_of_the_table_are_allowed(
    phase: AllocationPhase, trigger: AllocationTrigger
) -> None:
    if ALLOCATION_LIFECYCLE.allows(phase, trigger):
        assert ALLOCATION_LIFECYCLE.next(phase, trigger) is not phase
    else:
        with pytest.raises(IllegalTransition):
            ALLOCATION_LIFECYCLE.next(phase, trigger)


def test_whatever_lives_can_end_and_what_has_ended_stays_ended() -> None:
    for phase in AllocationPhase:
        can_end = ALLOCATION_LIFECYCLE.allows(phase, AllocationTrigger.ENDED)
        assert can_end is (phase is not AllocationPhase.ENDED)
        if phase is AllocationPhase.ENDED:
            assert not [
                each for each in AllocationTrigger if ALLOCATION_LIFECYCLE.allows(phase, each)
            ]
