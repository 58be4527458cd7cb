"""Which server a command talks to, and as whom: flag, environment, file, default."""

from pathlib import Path

import pytest

from hostler.cli.context import URL_DEFAULT, Target, resolve
from hostler.cli.errors import CommandError, ExitCode


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    return {"XDG_CONFIG_HOME": str(tmp_path)}


def write_config(home: dict[str, str], text: str) -> Path:
    folder = Path(home["XDG_CONFIG_HOME"], "hostler")
    folder.mkdir()
    (folder / "client.yaml").write_text(text)
    return folder


def test_without_anything_it_is_this_machine(home: dict[str, str]) -> None:
    assert resolve(None, None, home) == Target(url=URL_DEFAULT)


def test_a_flag_wins_over_the_environment_and_that_over_the_file(home: dict[str, str]) -> None:
    folder = write_config(home, "server: https://file.example\ntoken_file: token\n")
    (folder / "token").write_text("from-file\n")
    assert resolve(None, None, home) == Target("https://file.example", "from-file")
    around = {**home, "HOSTLER_SERVER": "https://env.example", "HOSTLER_TOKEN": "from-env"}
    assert resolve(None, None, around) == Target("https://env.example", "from-env")
    (folder / "other").write_text("from-flag")
    flagged = resolve("flag.example:80/", folder / "other", around)
    assert flagged == Target("http://flag.example:80", "from-flag")


def test_the_authority_of_the_server_is_beside_the_file(home: dict[str, str]) -> None:
    folder = write_config(home, "tls_ca: ca.pem\n")
    assert resolve(None, None, home).tls_ca == folder / "ca.pem"


@pytest.mark.parametrize("url", ["ftp://x", "http://", "http://x:port", "http://x:99999"])
def test_what_is_no_url_is_refused(home: dict[str, str], url: str) -> None:
    with pytest.raises(CommandError, match="is not the URL of a server") as refused:
        resolve(url, None, home)
    assert refused.value.code is ExitCode.BAD_INPUT


@pytest.mark.parametrize(
    ("text", "told"), [("servr: x", "servr"), ("server: [", "client.yaml"), ("server: 5", "server")]
)
def test_a_broken_configuration_is_told(home: dict[str, str], text: str, told: str) -> None:
    write_config(home, text)
    with pytest.raises(CommandError, match=told):
        resolve(None, None, home)


@pytest.mark.parametrize(("text", "told"), [(None, "no such file"), (" \n", "is empty")])
def test_a_token_file_without_a_token_is_told(
    home: dict[str, str], tmp_path: Path, text: str | None, told: str
) -> None:
    if text is not None:
        (tmp_path / "token").write_text(text)
    with pytest.raises(CommandError, match=told):
        resolve(None, tmp_path / "token", home)
