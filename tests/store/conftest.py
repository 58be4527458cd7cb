"""Lets pytest explain the assertions of the shipped suite as it does those of a test file."""

import pytest

pytest.register_assert_rewrite("hostler.testing.store_conformance")
