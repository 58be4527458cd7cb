"""The configuration of jobs: which number a content has.

The number is the generation of the bundle at which the content came, so a later one is higher and
the same number never names two contents. Going back to an older content is a change like any other.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from hostler.model import Bundle
from hostler.model.bundle import Job
from hostler.model.launch import JobConfig

EMPTY: Final = JobConfig()
"""What a running copy gets when its job has no configuration any more."""


def numbered(jobs: Iterable[Job], known: Bundle | None, generation: int) -> tuple[Job, ...]:
    """Number the jobs' configurations: those whose content is as it was keep their number.

    Args:
        jobs: What is desired from now on.
        known: What was desired until now.
        generation: The bundle's from now on.
    """
    return tuple(_numbered(job, known, generation) for job in jobs)


def _numbered(job: Job, known: Bundle | None, generation: int) -> Job:
    former = None if known is None else known.job(job.name)
    before = None if former is None else former.config
    if job.config is None and before is None:
        return job
    wanted = replace(job.config or EMPTY, generation=0)
    if before is not None and replace(before, generation=0) == wanted:
        return replace(job, config=before)
    return replace(job, config=replace(wanted, generation=generation))
