"""What the demo tells as it goes: live on a terminal, a line a step elsewhere, nothing for JSON."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.panel import Panel
from rich.status import Status
from rich.table import Table

from hostler.base.units import format_duration


class Step:
    """One step of the story while it runs."""

    def __init__(self, title: str, status: Status | None) -> None:
        self.title = title
        self.outcome = ""
        self._status = status

    def say(self, text: str) -> None:
        """Show what is waited for now."""
        if self._status is not None:
            self._status.update(f"{self.title} [dim]{text}[/dim]")

    def done(self, text: str) -> None:
        """Say how it ended; shown when the step does."""
        self.outcome = text


class Screen:
    """Where the story is told."""

    def __init__(self, console: Console, *, is_silent: bool) -> None:
        self._console = console
        self._is_silent = is_silent

    def opening(self, folder: str, url: str) -> None:
        """Say what is about to be seen."""
        if not self._is_silent:
            self._console.print(
                Panel(
                    "Real video, two encoders, one spare. We pull cables, kill machines, set\n"
                    "clocks, kill the server and then everything at once, and look whether\n"
                    "anybody misses a picture.\n"
                    f"[dim]server {url}   files {folder}[/dim]",
                    title="[bold]hostler demo[/bold]",
                    border_style="cyan",
                    expand=False,
                )
            )

    @contextmanager
    def step(self, title: str) -> Iterator[Step]:
        """Show a step until its block ends; a tick and its outcome, or a cross."""
        began = time.monotonic()
        live = not self._is_silent and self._console.is_terminal
        status = self._console.status(title, spinner="dots") if live else None
        step = Step(title, status)
        if status is not None:
            status.start()
        mark = "[red]✗[/red]"
        try:
            yield step
            mark = "[green]✓[/green]"
        finally:
            if status is not None:
                status.stop()
            if not self._is_silent:
                took = format_duration(round((time.monotonic() - began) * 1_000))
                self._console.print(
                    f"{mark} {title}  [dim]{step.outcome}[/dim]  [cyan]{took}[/cyan]"
                )

    def summary(self, rows: list[tuple[str, str, bool]]) -> None:
        """Show the table of what was measured: what, how much, and whether it held."""
        if self._is_silent:
            return
        table = Table(title="What held", title_justify="left", show_edge=False, pad_edge=False)
        table.add_column("measure")
        table.add_column("value", justify="right")
        table.add_column("")
        for name, value, is_held in rows:
            table.add_row(name, value, "[green]✓[/green]" if is_held else "[red]✗[/red]")
        self._console.print()
        self._console.print(table)

    def problems(self, texts: list[str]) -> None:
        """Say plainly what did not hold."""
        if not self._is_silent:
            for text in texts:
                self._console.print(f"[red]did not hold:[/red] {text}", highlight=False)

    def say(self, text: str) -> None:
        """Print a line."""
        if not self._is_silent:
            self._console.print(text, highlight=False)
