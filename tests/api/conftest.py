"""A server for each test, on any free port, in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from hostler.client import Client
from tests.api.lab import Lab, running


@pytest.fixture
async def lab(tmp_path: Path) -> AsyncIterator[Lab]:
    async with running(tmp_path) as lab:
        yield lab


@pytest.fixture
async def client(lab: Lab) -> AsyncIterator[Client]:
    async with lab.client() as client:
        yield client


@pytest.fixture
async def http(lab: Lab) -> AsyncIterator[httpx.AsyncClient]:
    async with lab.http() as http:
        yield http
