"""Write the table of `docs/topics.md` from `trawl.pipeline`.

python -m tools.topics            write the table
python -m tools.topics --check    write nothing; exit with 1 if the table differs
"""

import sys
from collections.abc import Iterable
from pathlib import Path

from tools.pages import with_table
from trawl.kinds import Stage
from trawl.pipeline import TOPICS, Party, Topic

PAGE = Path(__file__).resolve().parents[1] / "docs" / "topics.md"
HEAD = "| topic | record | key | from -> to | partitions | kept | |\n|---|---|---|---|---|---|---|\n"


def main(arguments: list[str]) -> int:
    """Write or check the table; give the exit code."""
    page = PAGE.read_text("utf-8")
    current = with_table(page, "topics", table(), "topics")
    if current == page:
        return 0
    if "--check" in arguments:
        sys.stderr.write(f"{PAGE.name} does not agree with trawl/pipeline.py; run `make topics`\n")
        return 1
    PAGE.write_text(current, "utf-8")
    return 0


def table() -> str:
    """Give the topology as a Markdown table."""
    return HEAD + "".join(map(row, TOPICS))


def row(topic: Topic) -> str:
    """Give the line of one topic."""
    way = f"{parties(topic.producers)} -> {parties(topic.consumers)}"
    kept = "for ever, compacted" if topic.compacted else f"{topic.retention_hours} h"
    cells = (f"`{topic.name}`", f"`{topic.record.__name__}`", topic.key.description, way, str(topic.partitions), kept)
    return f"| {' | '.join(cells)} | {topic.note} |\n"


def parties(names: Iterable[Party]) -> str:
    """Give names of senders or readers for people."""
    return "every stage" if tuple(names) == tuple(Stage) else ", ".join(names)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
