"""The first schema: records, events, journal, and where the store stands."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision: str | None = None


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "meta",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("revision", sa.BigInteger, nullable=False),
        sa.Column("now_ms", sa.BigInteger, nullable=False),
        sa.Column("event_seq", sa.BigInteger, nullable=False),
        sa.Column("leader_epoch", sa.BigInteger, nullable=False),
        sa.Column("events_floor", sa.BigInteger, nullable=False),
        sa.Column("fence", sa.BigInteger, nullable=False),
        sa.Column("record_format", sa.BigInteger, nullable=False),
        sa.Column("written_by", sa.Text, nullable=False),
    )
    op.create_table(
        "records",
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.UniqueConstraint("kind", "key", name="records_by_key"),
    )
    op.create_table(
        "events",
        sa.Column("seq", sa.Integer, primary_key=True),
        sa.Column("at_ms", sa.BigInteger, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "journal",
        sa.Column("revision", sa.Integer, primary_key=True),
        sa.Column("now_ms", sa.BigInteger, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
