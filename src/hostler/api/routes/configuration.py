"""Reading the server's configuration file again."""

from __future__ import annotations

from litestar import Response, post

from hostler.api.context import api_of, caller_of
from hostler.api.errors import Denied, HttpRequest
from hostler.api.gateway import new_request_id, origin_of
from hostler.api.http import Operation, answer, body_of, described
from hostler.model.token import Role
from hostler.wire.http import ReloadRequest, ReloadView


@post(
    "/v1/config/reload",
    **described(
        Operation(
            summary="Read the configuration file again and apply it, whole or not at all",
            body=ReloadRequest,
            answer=ReloadView,
            role=Role.ADMIN,
            statuses=(409, 422),
        )
    ),
)
async def reload(request: HttpRequest) -> Response[bytes]:
    """Names what differs and what follows; a dry run changes nothing.

    With the digest of a dry run, only the text that it has shown is applied.
    """
    api, caller = api_of(request), caller_of(request)
    asked = await body_of(request, ReloadRequest)
    if api.configuration is None:
        raise Denied(
            409,
            "configuration_not_a_file",
            "this server was not started from a configuration file",
        )
    view = await api.configuration.reload(
        api.engine,
        request_id=new_request_id(),
        principal=caller.principal,
        origin=origin_of(request, caller),
        is_dry_run=asked.is_dry_run,
        expected=asked.digest,
    )
    return answer(view)


ROUTES = [reload]
