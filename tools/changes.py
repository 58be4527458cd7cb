"""Shows the notes in changes.d as one section of the changelog, or folds them into it.

python tools/changes.py                      print what the next section would say
python tools/changes.py --release 0.2.0      write it into CHANGELOG.md and remove the notes
"""

import argparse
import sys
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NOTES = ROOT / "changes.d"
CHANGELOG = ROOT / "CHANGELOG.md"
PLACE = "<!-- releases -->"
TITLES = {
    "security": "Security",
    "removed": "Removed",
    "changed": "Changed",
    "added": "Added",
    "fixed": "Fixed",
}


def notes() -> dict[str, list[Path]]:
    """Group the notes by kind, in the order in which a reader wants them."""
    paths = sorted(path for path in NOTES.glob("*.md") if path.name != "README.md")
    return {kind: [path for path in paths if path.name.endswith(f".{kind}.md")] for kind in TITLES}


def section(title: str, grouped: dict[str, list[Path]]) -> str:
    """Write the section of one release."""
    lines = [f"## {title}", ""]
    for kind, paths in grouped.items():
        if paths:
            lines += [f"### {TITLES[kind]}", "", *map(_bullet, paths), ""]
    return "\n".join(lines)


def _bullet(path: Path) -> str:
    issue = path.name.partition("-")[0]
    told = path.read_text(encoding="utf-8").strip().replace("\n", "\n  ")
    return f"- {told} (#{issue})"


def main() -> int:
    """Print the section, or fold it in."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--release", metavar="VERSION", help="fold the notes into CHANGELOG.md")
    version = parser.parse_args().release

    grouped = notes()
    if version is None:
        print(section("Unreleased", grouped))
        return 0
    today = datetime.now(UTC).date().isoformat()
    folded = f"{PLACE}\n\n{section(f'{version} ({today})', grouped)}"
    before = CHANGELOG.read_text(encoding="utf-8")
    CHANGELOG.write_text(before.replace(PLACE, folded.rstrip(), 1), encoding="utf-8")
    for paths in grouped.values():
        for path in paths:
            path.unlink()
    print(f"CHANGELOG.md now has {version}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
