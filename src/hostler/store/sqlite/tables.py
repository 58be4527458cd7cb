"""The tables, and the statements that must be fast, compiled once.

Migrations do not import this: they say for themselves what they change, and stay as they are when
the tables move on. A test compares the two.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    BigInteger,
    Column,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    bindparam,
    delete,
    select,
    update,
)
from sqlalchemy.dialects import sqlite
from sqlalchemy.sql import ClauseElement

METADATA: Final = MetaData()

META: Final = Table(
    "meta",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("revision", BigInteger, nullable=False),
    Column("now_ms", BigInteger, nullable=False),
    Column("event_seq", BigInteger, nullable=False),
    Column("leader_epoch", BigInteger, nullable=False),
    Column("events_floor", BigInteger, nullable=False),
    Column("fence", BigInteger, nullable=False),
    Column("record_format", BigInteger, nullable=False),
    Column("written_by", Text, nullable=False),
)
"""One row: where the store stands, what is forgotten, and who wrote it.

`events_floor` is the last forgotten event. `fence` counts the writes that settled a doubt."""

RECORDS: Final = Table(
    "records",
    METADATA,
    Column("kind", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("body", LargeBinary, nullable=False),
    UniqueConstraint("kind", "key", name="records_by_key"),
)
"""An ordinary table with an index, not `WITHOUT ROWID`: bodies above 1 kB would leave the b-tree
of the key for pages of their own, and a commit would write twice as many (measured)."""

EVENTS: Final = Table(
    "events",
    METADATA,
    Column("seq", Integer, primary_key=True),
    Column("at_ms", BigInteger, nullable=False),
    Column("body", LargeBinary, nullable=False),
)

JOURNAL: Final = Table(
    "journal",
    METADATA,
    Column("revision", Integer, primary_key=True),
    Column("now_ms", BigInteger, nullable=False),
    Column("body", LargeBinary, nullable=False),
)

LIVES: Final = Table(
    "lives",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("subject", Text, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("at_ms", BigInteger, nullable=False),
    Column("body", LargeBinary, nullable=False),
    UniqueConstraint("subject", "seq", name="lives_by_subject"),
)
"""Events by whose life they belong to. Ids rise, so the oldest of all have the lowest."""


def _compiled(statement: ClauseElement) -> str:
    """Compile a statement without literals to SQL whose `?` stand in the order of its parameters.

    A commit and a load run them on the driver's connection, below SQLAlchemy's.
    """
    return str(statement.compile(dialect=sqlite.dialect()))


_put = sqlite.insert(RECORDS)

POSITION: Final = _compiled(
    select(META.c.revision, META.c.now_ms, META.c.event_seq, META.c.leader_epoch)
)
RECORDS_ALL: Final = _compiled(select(RECORDS.c.kind, RECORDS.c.key, RECORDS.c.body))
ADVANCE: Final = _compiled(
    update(META).values(
        revision=bindparam("revision"),
        now_ms=bindparam("now_ms"),
        event_seq=bindparam("event_seq"),
    )
)
PUT: Final = _compiled(
    _put.on_conflict_do_update(
        index_elements=[RECORDS.c.kind, RECORDS.c.key], set_={"body": _put.excluded.body}
    )
)
REMOVE: Final = _compiled(
    delete(RECORDS).where(
        RECORDS.c.kind == bindparam("removed_kind"), RECORDS.c.key == bindparam("removed_key")
    )
)
ADD_EVENT: Final = _compiled(sqlite.insert(EVENTS))
ADD_LIFE: Final = _compiled(
    sqlite.insert(LIVES).values(
        subject=bindparam("subject"),
        seq=bindparam("seq"),
        at_ms=bindparam("at_ms"),
        body=bindparam("body"),
    )
)
ADD_JOURNAL: Final = _compiled(sqlite.insert(JOURNAL))
