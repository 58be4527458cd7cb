"""What a job works by: read from a file, and waited for until it is delivered."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from hostler.base.units import format_duration
from hostler.cli.documents import name_of, read_text
from hostler.cli.errors import CommandError, ExitCode
from hostler.cli.remote import Remote, now_ms
from hostler.cli.terminal import note

if TYPE_CHECKING:
    from hostler.wire.documents import JobConfigDocument


def read_job_config_file(path: Path) -> JobConfigDocument:
    """Read values, files and signal; all that is wrong is told at once.

    Raises:
        DocumentRejected: The file is not a configuration of a job.
    """
    from hostler.wire.documents import read_job_config

    return read_job_config(read_text(path), name_of(path)).require()


def wait_delivered(remote: Remote, bundle_id: str, job: str, timeout_ms: int) -> None:
    """Return when every copy that runs has been given what is meant for it.

    Raises:
        CommandError: One has not, in that time; the change stands, and is delivered later.
    """
    from hostler.cli.draining import POLL_S

    ends_at_ms, told = now_ms() + timeout_ms, ""
    while True:
        replicas = remote.patient_client.replicas(bundle=bundle_id)
        behind = [
            one
            for one in replicas
            if one.job == job and one.config is not None and one.config.written < one.config.wanted
        ]
        if not behind:
            return
        first = behind[0]
        why = first.config.problem if first.config is not None else ""
        now = f"{len(behind)} to go, {first.replica_id} first" + (f": {why}" if why else "")
        if now != told:
            told = now
            note(f"job/{bundle_id}/{job}: {now}")
        if now_ms() > ends_at_ms:
            raise CommandError(
                f"job/{bundle_id}/{job}: not delivered within {format_duration(timeout_ms)}; {now}",
                code=ExitCode.FAILED,
            )
        time.sleep(POLL_S)
