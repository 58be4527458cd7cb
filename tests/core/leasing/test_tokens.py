"""Tokens: remembered by a hash, bound to what they are for, worthless once revoked."""

from typing import Any

import pytest

from hostler.core.inputs import CreateToken, RevokeToken
from hostler.core.replies import Accepted
from hostler.model.token import Role
from hostler.testing.builders import a_fixed_tier, a_pool, an_elastic_tier
from tests.core.leasing.conftest import NewRental

POOL = a_pool(tiers=(a_fixed_tier("own"), an_elastic_tier("cloud")))
GOOD: dict[str, Any] = {"name": "ci", "role": Role.LESSEE, "sha256": "a" * 64}


def test_a_token_is_remembered_by_its_hash_and_revoked_once(rental: NewRental) -> None:
    world = rental(POOL)
    answer = world.ask(CreateToken, **GOOD, pool="p", expires_at_ms=10)
    assert isinstance(answer, Accepted)
    token = world.fleet.tokens[answer.subject_id]
    assert (token.created_by, token.is_revoked) == ("tester", False)
    assert world.fleet.index.tokens_by_hash.keys("a" * 64) == [token.token_id]
    assert world.ask(RevokeToken, token_id=token.token_id) == Accepted(subject_id=token.token_id)
    assert world.fleet.tokens[token.token_id].is_revoked
    again = world.ask(RevokeToken, token_id=token.token_id)
    assert again == Accepted(subject_id=token.token_id, is_repeat=True)
    assert world.events() == ["token_created", "token_revoked"]


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"sha256": "secret"}, "token_hash_invalid"),
        ({"expires_at_ms": 0}, "token_expired"),
        ({"pool": "nowhere"}, "pool_not_found"),
        ({"role": Role.AGENT}, "token_scope_missing"),
        ({"role": Role.AGENT, "pool": "p", "tier": "other"}, "tier_not_found"),
        ({"role": Role.AGENT, "pool": "p", "tier": "cloud"}, "token_scope_invalid"),
        ({"pool": "p", "tier": "own"}, "token_scope_invalid"),
    ],
)
def test_a_token_that_makes_no_sense_is_refused(
    rental: NewRental, fields: dict[str, Any], code: str
) -> None:
    world = rental(POOL)
    assert world.ask(CreateToken, **{**GOOD, **fields}).code == code  # type: ignore[union-attr]  # refused
    assert not world.fleet.tokens.rows


def test_an_agent_token_names_its_pool_and_tier(rental: NewRental) -> None:
    world = rental(POOL)
    given = {**GOOD, "role": Role.AGENT, "pool": "p", "tier": "own"}
    assert isinstance(world.ask(CreateToken, **given), Accepted)


def test_a_secret_makes_one_token_only_and_an_unknown_one_is_missing(rental: NewRental) -> None:
    world = rental(POOL)
    world.ask(CreateToken, **GOOD)
    assert world.ask(CreateToken, **GOOD).code == "token_exists"  # type: ignore[union-attr]  # refused
    assert world.ask(RevokeToken, token_id="t-404404").is_missing  # type: ignore[union-attr]  # refused
