"""The server's key and the credentials that follow from it."""

import errno
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hostler.base.errors import Failed, Rejected
from hostler.engine.keys import Keys, new_token_secret, token_hash


def test_a_key_file_is_made_once_for_its_owners_eyes_alone(tmp_path: Path) -> None:
    path = tmp_path / "data" / "server.key"
    token = Keys.open(path).join_token("n-1", 1)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert Keys.open(path).join_token("n-1", 1) == token
    assert list(path.parent.iterdir()) == [path]


def test_servers_that_start_at_once_agree_on_one_key(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        keys = list(threads.map(lambda _: Keys.open(tmp_path / "server.key"), range(8)))
    assert len({key.join_token("n-1", 1) for key in keys}) == 1


def test_a_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "server.key"
    Keys.open(path)
    path.chmod(0o640)
    with pytest.raises(Rejected, match="0600"):
        Keys.open(path)


def test_a_damaged_key_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "server.key"
    path.touch(mode=0o600)
    with pytest.raises(Rejected, match="not a server key"):
        Keys.open(path)


def test_credentials_say_for_whom_they_are_and_for_nothing_else() -> None:
    keys = Keys.ephemeral()
    token = keys.join_token("n-000001", 3)
    assert keys.verify_join_token(token) == ("n-000001", 3)
    assert keys.verify_agent_credential(token) is None
    assert keys.verify_agent_credential("ha" + token.removeprefix("hj")) is None
    assert keys.verify_join_token(keys.agent_credential("n-000001", 3)) is None
    assert keys.verify_agent_credential(keys.agent_credential("n-000001", 3)) == ("n-000001", 3)
    assert Keys.ephemeral().verify_join_token(token) is None


@pytest.mark.parametrize(
    "forged",
    ["", "hj_", "hj_n-1.1", "hj_n-1.x.code", "hj_n-1.1.", "hj_n-1.-1.a", "n-1.1.a", "hj_ü.1.ü"],
)
def test_what_we_did_not_make_is_worth_nothing(forged: str) -> None:
    assert Keys.ephemeral().verify_join_token(forged) is None


def test_a_changed_word_makes_a_credential_worthless() -> None:
    keys = Keys.ephemeral()
    token = keys.join_token("n-000001", 1)
    assert keys.verify_join_token(token.replace("n-000001", "n-000002")) is None
    assert keys.verify_join_token(token.replace(".1.", ".2.")) is None


def test_a_persons_token_is_random_and_kept_as_a_hash() -> None:
    secret = new_token_secret()
    assert secret.startswith("ht_")
    assert secret != new_token_secret()
    assert len(token_hash(secret)) == 64
    assert secret not in token_hash(secret)


def test_a_key_that_is_there_needs_no_room_and_a_new_one_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = tmp_path / "server.key"
    token = Keys.open(old).join_token("n-1", 1)

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    assert Keys.open(old).join_token("n-1", 1) == token
    with pytest.raises(Failed, match="key cannot be written: no space left"):
        Keys.open(tmp_path / "new.key")
    assert list(tmp_path.iterdir()) == [old], "no half of a key is left"
