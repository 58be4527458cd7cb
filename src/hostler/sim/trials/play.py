"""Plays trials, and tells how each ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from rich.console import Console

from hostler.sim.history import Outcome
from hostler.sim.trials.stage import Stage
from hostler.sim.trials.trial import Trial, all_trials


def play(trial: Trial, *, tell: Callable[[str], None] | None = None) -> Outcome:
    """Play every interleaving of a trial, and return the first that breaks or else the last."""
    for seed in range(1, trial.seed_count + 1):
        outcome = Stage(trial, seed, tell=tell).run()
        if outcome.violation:
            break
    return outcome


def wanted(names: Sequence[str]) -> Iterator[Trial]:
    """Yield the trials of these names, or all of them.

    Raises:
        KeyError: There is no such trial.
    """
    table = all_trials()
    for name in names or table:
        yield table[name]


def play_all(names: Sequence[str], *, is_told: bool = False) -> int:
    """Play trials and print a line for each; return 0 if all is right."""
    console = Console(highlight=False)

    def tell(line: str) -> None:
        console.print(line, markup=False, soft_wrap=True)

    try:
        trials = list(wanted(names))
    except KeyError as error:
        Console(stderr=True).print(f"there is no trial {error}", markup=False)
        return 2
    broken_count = 0
    for trial in trials:
        outcome = play(trial, tell=tell if is_told else None)
        broken_count += bool(outcome.violation)
        tell(f"{'BROKEN' if outcome.violation else 'ok':<7}{trial.name:<4}{trial.right}")
        if outcome.violation:
            tell(
                f"       {outcome.violation}\n       python -m hostler.sim --trials {trial.name} -v"
            )
    console.print(
        f"{len(trials)} trials, {broken_count} broken", style="red" if broken_count else "green"
    )
    return 1 if broken_count else 0
