"""`python -m tests.wire`: writes down anew what is told about each bad document."""

from tests.wire.test_documents import BAD, told

for path in BAD:
    path.with_suffix(".txt").write_text(told(path), encoding="utf-8")
