"""Blocking faces of asynchronous objects: a line for each method, with its types and words."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from hostler.client.background import BackgroundLoop

A = TypeVar("A")
A_co = TypeVar("A_co", covariant=True)
P = ParamSpec("P")
R = TypeVar("R")


class Blocking(Generic[A_co]):
    """Something asynchronous that lives on a loop in a thread of its own."""

    def __init__(self, loop: BackgroundLoop, twin: A_co) -> None:
        self._loop = loop
        self._twin = twin


def blocking(
    method: Callable[Concatenate[A, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[Blocking[A], P], R]:
    """Make a blocking method of an asynchronous one."""

    @functools.wraps(method)
    def call(self: Blocking[A], /, *args: P.args, **given: P.kwargs) -> R:
        return self._loop.run(method(self._twin, *args, **given))

    return call


def iterating(
    method: Callable[Concatenate[A, P], AsyncIterator[R]],
) -> Callable[Concatenate[Blocking[A], P], Iterator[R]]:
    """Make a blocking iteration of an asynchronous one."""

    @functools.wraps(method)
    def call(self: Blocking[A], /, *args: P.args, **given: P.kwargs) -> Iterator[R]:
        return self._loop.iterate(method(self._twin, *args, **given))

    return call
