"""What every store demands of a commit, in one place so that all demand the same."""

from __future__ import annotations

import itertools

import msgspec

from hostler.base.errors import check
from hostler.ports.store import Commit, CommitFailed, LeadershipLost


class Position(msgspec.Struct, frozen=True):
    """Where a store stands: what its next commit is measured against."""

    revision: int = 0
    """Number of the last commit."""
    now_ms: int = 0
    """The clock of the last commit."""
    event_seq: int = 0
    """The last event ever stored, kept or not."""
    leader_epoch: int = 0
    """The last one claimed."""

    def after(self, commit: Commit) -> Position:
        """Return where the store stands once `commit` is in."""
        event_seq = commit.events[-1].seq if commit.events else self.event_seq
        return Position(commit.revision, commit.now_ms, event_seq, self.leader_epoch)


def check_shape(commit: Commit) -> None:
    """Check what is wrong with a commit whatever the store holds.

    Raises:
        Defect: The writer has built it wrongly.
    """
    seqs = [event.seq for event in commit.events]
    check(
        all(earlier < later for earlier, later in itertools.pairwise(seqs)),
        "event_order",
        "the events of a commit are not in rising order",
        revision=commit.revision,
    )
    check(
        commit.journal is None or commit.journal.revision == commit.revision,
        "journal_revision",
        "the journal row of a commit belongs to another revision",
        revision=commit.revision,
    )


def refusal(commit: Commit, position: Position) -> CommitFailed | LeadershipLost | None:
    """Return why a store at `position` cannot take `commit`; `None` when it can."""
    if commit.leader_epoch < position.leader_epoch:
        return LeadershipLost(epoch=commit.leader_epoch, current_epoch=position.leader_epoch)
    if commit.leader_epoch > position.leader_epoch:
        return CommitFailed(
            "leader_epoch_unclaimed",
            "the commit carries a leader epoch that was never claimed here",
            epoch=commit.leader_epoch,
            current_epoch=position.leader_epoch,
        )
    if commit.revision != position.revision + 1:
        return CommitFailed(
            "revision_gap",
            "the commit does not follow the last one",
            revision=commit.revision,
            current_revision=position.revision,
        )
    if commit.events and commit.events[0].seq <= position.event_seq:
        return CommitFailed(
            "event_seq_used",
            "the commit's first event does not come after the last one",
            seq=commit.events[0].seq,
            current_seq=position.event_seq,
        )
    return None
