"""Admissible rules: what is wrong with where a bundle says that its replicas shall be."""

from __future__ import annotations

from collections.abc import Iterator

from hostler.core.inputs import SubmitBundle
from hostler.core.replies import Problem
from hostler.model.bundle import Job
from hostler.model.constraint import Affinity, SpreadOver, SpreadRule


def rule_problems(one: SubmitBundle) -> Iterator[Problem]:
    """Give everything that is wrong with a bundle's rules about places."""
    seen: set[str] = set()
    for number, rule in enumerate(one.spread):
        path = f"spread[{number}]"
        yield from _domain_problems(path, rule)
        if rule.domain in seen:
            yield _problem(
                f"{path}.over", "duplicate", f"there is a rule over {rule.domain} already"
            )
        seen.add(rule.domain)
        if rule.skew_max is not None and (rule.skew_max < 1 or rule.over is SpreadOver.NODE):
            told = "must be at least 1, and is not for nodes: two of one job never share one"
            yield _problem(f"{path}.skew_max", "out_of_range", told)
    if one.backup_apart is not None:
        yield from _domain_problems("backup_apart", one.backup_apart)
        if one.backup_apart.skew_max is not None:
            yield _problem("backup_apart.skew_max", "not_here", "a pair has no skew; leave it out")
    for number, job in enumerate(one.jobs):
        for place, affinity in enumerate(job.affinities):
            path = f"jobs[{number}].affinities[{place}]"
            yield from _domain_problems(path, affinity)
            yield from _peer_problems(path, one, job, affinity)
    yield from _circles(one)


def _problem(path: str, code: str, message: str) -> Problem:
    return Problem(path=path, code=code, message=message)


def _domain_problems(path: str, rule: SpreadRule | Affinity) -> Iterator[Problem]:
    if (rule.over is SpreadOver.LABEL) is (not rule.label):
        told = "name the label, and only in a rule that is over one"
        yield _problem(f"{path}.label", "invalid", told)


def _peer_problems(path: str, one: SubmitBundle, job: Job, affinity: Affinity) -> Iterator[Problem]:
    peers = affinity.peers
    if peers.bundle_id not in ("", one.bundle_id) or (peers.labels and not peers.bundle_id):
        return
    if peers.job and all(each.name != peers.job for each in one.jobs):
        names = ", ".join(each.name for each in one.jobs)
        told = f"this bundle has no job {peers.job}; its jobs are: {names}"
        yield _problem(f"{path}.peers.job", "job_unknown", told)
    is_whole_job = peers.job in ("", job.name) and peers.replica_index is None
    if not affinity.is_apart and affinity.over is SpreadOver.NODE and is_whole_job:
        told = "two replicas of one job never share a node; name another job, or use colocate"
        if affinity.is_required and (peers.job == job.name or len(one.jobs) == 1):
            yield _problem(path, "unsatisfiable", told)


def _circles(one: SubmitBundle) -> Iterator[Problem]:
    """Give the jobs that wait for each other to be placed first."""
    wanted = {
        job.name: {
            affinity.peers.job
            for affinity in job.affinities
            if affinity.is_required
            and not affinity.is_apart
            and affinity.peers.bundle_id in ("", one.bundle_id)
            and not affinity.peers.labels
            and affinity.peers.job not in ("", job.name)
        }
        for job in one.jobs
    }
    for number, job in enumerate(one.jobs):
        reached, open_ends = set[str](), sorted(wanted[job.name])
        while open_ends:
            name = open_ends.pop()
            if name not in reached:
                reached.add(name)
                open_ends += sorted(wanted.get(name, ()))
        if job.name in reached:
            told = "jobs that must each be near the other wait for ever; use colocate instead"
            yield _problem(f"jobs[{number}].affinities", "circle", told)
