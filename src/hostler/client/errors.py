"""The two ways in which talking to a server fails: it says no, or it cannot be reached."""

from __future__ import annotations

import httpx
import msgspec

from hostler.base.errors import Failed, HostlerError
from hostler.wire.http import Problem, ProblemError, problem


class ClientError(HostlerError):
    """The server refused the request.

    Attributes:
        problem: The server's words (RFC 9457); `problem.code` is what programs branch on.
    """

    def __init__(self, told: Problem) -> None:
        self.problem = told
        super().__init__(told.code, told.detail, **told.fields)

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.problem.status

    @property
    def errors(self) -> list[ProblemError]:
        """What is wrong with a document or a parameter, one by one."""
        return self.problem.errors


class Unreachable(Failed):
    """The server cannot be reached, or the connection broke before its answer."""

    def __init__(self, url: str, why: str) -> None:
        self.url = url
        super().__init__(
            "unreachable",
            f"cannot reach the server at {url}: {why}",
            effect="unknown",
        )


def unreachable(url: str, error: Exception) -> Unreachable:
    """Say in plain words why a connection failed."""
    text = str(error)
    match error:
        case _ if "CERTIFICATE_VERIFY_FAILED" in text:
            why = "its certificate is not trusted here; name its authority with tls_ca"
        case _ if "WRONG_VERSION_NUMBER" in text:
            why = "it does not speak TLS on this port; use http:// instead of https://"
        case httpx.RemoteProtocolError() if url.startswith("http:"):
            why = f"{text.rstrip('.')}; does it want https://?"
        case httpx.ConnectTimeout() | httpx.ReadTimeout() | TimeoutError():
            why = "it does not answer in time"
        case httpx.ConnectError() | ConnectionRefusedError():
            why = f"{text or 'no connection'}; is `hostler server` running there?"
        case _:
            why = text or type(error).__name__
    return Unreachable(url, why)


def refusal(status: int, body: bytes) -> ClientError:
    """Read a problem, or make one where something else than our server answered."""
    try:
        return ClientError(msgspec.json.decode(body, type=Problem))
    except msgspec.MsgspecError:
        return ClientError(
            problem(
                status,
                "Unexpected answer",
                "unexpected_answer",
                f"the answer (status {status}) is not from a Hostler server; check the URL",
            )
        )
