"""Records become rows and come back; what does not is named."""

import pytest

from hostler.model import KINDS
from hostler.model.record import Counter
from hostler.ports.store import Change, StoreCorrupt
from hostler.store.codec import RecordFormat, decode_record, decode_records, put, removal


def test_a_record_becomes_a_row_and_comes_back() -> None:
    counter = Counter(name="n", value=7)
    change = put(counter)
    assert change == Change("counter", "n", b'{"gaps":[],"name":"n","value":7}')
    assert decode_record("counter", "n", b'{"name":"n","value":7}') == counter
    assert removal("counter", "n") == Change("counter", "n", None)


def test_records_come_in_the_order_of_the_store() -> None:
    rows = {"counter": {name: put(Counter(name=name, value=1)).body or b"" for name in "abc"}}
    assert [record.key for record in decode_records(rows)] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("kind", "key", "body"),
    [
        ("nonsense", "n", b"{}"),
        ("counter", "n", b'{"name":"n"}'),
        ("counter", "n", b"\xff"),
        ("counter", "other", b'{"name":"n","value":7}'),
        ("counter", "n", b'{"name":"n","value":7,"extra":1}'),
    ],
    ids=["kind", "field", "json", "key", "unknown"],
)
def test_a_row_that_cannot_be_read_is_named(kind: str, key: str, body: bytes) -> None:
    with pytest.raises(StoreCorrupt, match="cannot be read") as refused:
        decode_record(kind, key, body)
    assert refused.value.fields == {"kind": kind, "key": key}


def test_every_kind_goes_by_its_own_name() -> None:
    assert all(name == kind.KIND for name, kind in KINDS.items())


def test_bodies_climb_one_format_at_a_time() -> None:
    form = RecordFormat(
        version=3, upcasts={1: {"a": lambda old: {"x": old["w"]}}, 2: {"a": lambda _: None}}
    )
    assert form.upgrade("a", "k", b'{"w":1}', from_version=1) is None
    assert form.upgrade("a", "k", b'{"w":1}', from_version=3) == b'{"w":1}'
    assert form.upgrade("b", "k", b"whatever", from_version=1) == b"whatever"
    with pytest.raises(StoreCorrupt):
        form.upgrade("a", "k", b"[]", from_version=1)
