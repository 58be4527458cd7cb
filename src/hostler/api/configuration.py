"""The configuration of a running server: read again, compared, and applied whole or not."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Final

import structlog

from hostler.api.errors import Denied, refused
from hostler.base.encoding import digest
from hostler.base.errors import HostlerError, Rejected
from hostler.core.inputs import ApplyConfiguration
from hostler.core.replies import Refused
from hostler.engine.effects import Foreseen, foresee
from hostler.engine.engine import Engine
from hostler.engine.translate import apply_configuration, provider_problems, time_zone_problems
from hostler.model.audit import Origin
from hostler.wire.documents import (
    ConfigDocument,
    DocumentProblem,
    DocumentRejected,
    Reading,
    read_config,
)
from hostler.wire.documents.changes import DocumentChange, changes_between
from hostler.wire.http import ConfigChangeView, ReloadEffectView, ReloadView

_log = structlog.get_logger(__name__)

_AT_START: Final = ("server.",)
"""Paths of what is read once, when a server starts."""


class Configuration(ABC):
    """Where a server's configuration is read, and what of it is in force.

    One reload runs at a time and each reads the text itself, so the text as it is last has its way.
    """

    def __init__(self, source: str, document: ConfigDocument) -> None:
        """Remember a source.

        Args:
            source: What people call it.
            document: What was read of it and is in force.
        """
        self._source = source
        self._document = document
        self._turn = asyncio.Lock()

    @property
    def document(self) -> ConfigDocument:
        """What is in force."""
        return self._document

    @abstractmethod
    def read(self) -> str:
        """Return the text as it is now; called in a thread.

        Raises:
            Rejected: It cannot be read.
        """

    async def reload(
        self,
        engine: Engine,
        *,
        request_id: str,
        principal: str,
        origin: Origin | None = None,
        is_dry_run: bool = False,
        expected: str = "",
        given: Reading[ConfigDocument] | None = None,
    ) -> ReloadView:
        """Read the text again and make it the configuration, or say what that would change.

        Args:
            engine: Started.
            request_id: Of the request to the core.
            principal: Who asks, for the audit.
            origin: From where.
            is_dry_run: Change nothing.
            expected: Digest of the only text that is to be taken; empty takes any.
            given: Taken this once, instead of what `read` returns.

        Raises:
            Rejected: It cannot be read, has problems (all are told), or is not as expected.
            Failed: The change could not be made durable.
        """
        async with self._turn:
            text = None if given is not None else await asyncio.to_thread(self.read)
            text_digest = digest((text or "").encode())
            if expected and expected != text_digest:
                raise Denied(
                    409,
                    "configuration_changed",
                    f"{self._source} has changed since it was looked at: look again",
                )
            reading = given or read_config(text or "", self._source)
            request = self._request(reading, engine, request_id, principal, origin)
            now_ms = engine.clock.now_ms()
            foreseen = await engine.read(lambda fleet: foresee(fleet, request, now_ms))
            if foreseen.refusal is not None:
                raise _rejected(reading, foreseen.refusal)
            document = reading.require()
            changes = changes_between(self._document, document)
            if not is_dry_run:
                result = await engine.submit(request)
                if isinstance(result, Refused):
                    raise _rejected(reading, result)
                self._document = document
            return _view(text_digest, changes, foreseen, is_applied=not is_dry_run)

    def _request(
        self,
        reading: Reading[ConfigDocument],
        engine: Engine,
        request_id: str,
        principal: str,
        origin: Origin | None,
    ) -> ApplyConfiguration:
        document = reading.require()
        problems = [
            *provider_problems(document, engine.registry),
            *time_zone_problems(document),
        ]
        if problems:
            raise reading.placed(problems)
        return apply_configuration(
            document,
            now_ms=engine.clock.now_ms(),
            request_id=request_id,
            principal=principal,
            origin=origin,
            registry=engine.registry,
        )

    async def reload_on_signal(self, engine: Engine, request_id: str) -> None:
        """Reload, with the log as the only one to tell."""
        try:
            view = await self.reload(engine, request_id=request_id, principal="SIGHUP")
        except DocumentRejected as error:
            _log.error("configuration_refused", file=self._source, problems=error.lines())
        except HostlerError as error:
            _log.error("configuration_refused", file=self._source, why=str(error))
        else:
            _log.info(
                "configuration_reloaded",
                file=self._source,
                changed=[one.path for one in view.changes if not one.needs_restart],
                needs_restart=[one.path for one in view.changes if one.needs_restart],
            )


class ConfigurationFile(Configuration):
    """The file that a server was started from."""

    def __init__(self, path: Path, document: ConfigDocument) -> None:
        """Remember a file.

        Args:
            path: The file; `-` is standard input, which cannot be read again.
            document: What was read of it and is in force.
        """
        super().__init__(str(path), document)
        self._path = path
        self._full_path = path.absolute()

    def read(self) -> str:
        """See `Configuration.read`."""
        if str(self._path) == "-":
            raise Denied(
                409,
                "configuration_not_a_file",
                "the configuration came from standard input: restart the server to change it",
            )
        try:
            return self._full_path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise Rejected(
                "configuration_unreadable", f"{self._path} is not text in UTF-8"
            ) from error
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise Rejected(
                "configuration_unreadable", f"cannot read {self._path}: {why}"
            ) from error


def _rejected(reading: Reading[ConfigDocument], result: Refused) -> Exception:
    if not result.problems:
        return refused(result)
    return reading.placed(
        [
            DocumentProblem(path=one.path, code=one.code, message=one.message)
            for one in result.problems
        ]
    )


def _view(
    text_digest: str, changes: list[DocumentChange], foreseen: Foreseen, *, is_applied: bool
) -> ReloadView:
    return ReloadView(
        digest=text_digest,
        is_applied=is_applied,
        changes=[
            ConfigChangeView(
                path=one.path,
                before=one.before,
                after=one.after,
                needs_restart=one.path.startswith(_AT_START),
            )
            for one in changes
        ],
        effects=[
            ReloadEffectView(pool=one.pool, effect=one.effect, count=one.count, reason=one.reason)
            for one in foreseen.effects
        ],
    )
