"""Controllers: one concern a file, independent of each other; they meet in records.

Each module has `READS` (the kinds of record whose change wakes it) and `reconcile(txn)`. It looks
at state, never at the input that woke it; run twice on the same state, it writes nothing the second
time; and wherever it decides not to act it notes a `Reason`.
"""
