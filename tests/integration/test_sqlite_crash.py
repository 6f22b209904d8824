"""Case 39 and 40 at the store: `kill -9` at any moment leaves the state before or after each call."""

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.integration.crash_worker import PAGES_MAX
from trawl.adapters.sqlite import Database, SqliteFrontierStore, SqlitePageStore, SqliteSearchIndex
from trawl.fingerprint import bands
from trawl.ports import SearchQuery

ROOT = Path(__file__).resolve().parents[2]
KILLS = 6
GROUP_SECONDS = 0.02


def _killed(folder: Path, seed: int, group_seconds: float = 0.0) -> Counter[tuple[str, int]]:
    """What the worker told before it was killed at a random moment."""
    command = [sys.executable, "-m", "tests.integration.crash_worker", str(folder), str(seed), str(group_seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as worker:
        assert worker.stdout is not None
        assert worker.stdout.readline() == b"ready\n"
        time.sleep(random.Random(seed).uniform(0.05, 0.5))
        worker.send_signal(signal.SIGKILL)
        told = worker.stdout.read().decode()
    assert worker.returncode == -signal.SIGKILL
    whole = told[: told.rfind("\n") + 1].splitlines()
    return Counter((line.split()[0], int(line.split()[1])) for line in whole)


def test_case_39_a_killed_process_leaves_counters_that_agree_with_the_rows(tmp_path: Path) -> None:
    told: Counter[tuple[str, int]] = Counter()
    for seed in range(1, KILLS + 1):
        now = _killed(tmp_path, seed)
        assert now, "the worker was killed before it did anything"
        told += now
        database = Database(tmp_path)
        assert list(faults(database)) == []
        assert list(_lost(database, told)) == []
        database.close()


def test_case_39_grouped_commits_are_there_together_or_not_at_all(tmp_path: Path) -> None:
    for seed in range(1, KILLS + 1):
        assert _killed(tmp_path, seed, GROUP_SECONDS), "the worker was killed before it did anything"
        database = Database(tmp_path)
        assert list(faults(database)) == []
        database.close()


async def test_case_40_no_lease_is_lost_when_its_holder_is_killed(tmp_path: Path) -> None:
    told = _killed(tmp_path, 99)
    database = Database(tmp_path)
    frontier = SqliteFrontierStore(database)
    held = {key for kind, key in told if kind == "leased"} - {key for kind, key in told if kind == "done"}
    before = await frontier.progress("c")
    assert await frontier.release_leases() == before.leased
    after = await frontier.progress("c")
    assert (after.queued, after.leased) == (before.queued + before.leased, 0)
    rows = {row.request.request_key: row.state async for row in frontier.rows("c")}
    assert {rows[key] for key in held if key in rows} <= {"queued", "done"}
    assert list(faults(database)) == []
    database.close()


async def test_search_and_pages_work_after_a_kill(tmp_path: Path) -> None:
    told = _killed(tmp_path, 7)
    database = Database(tmp_path)
    index, pages = SqliteSearchIndex(database), SqlitePageStore(database)
    await index.open("model", 8)
    assert len(await index.search(SearchQuery(text="words 検索"))) == 10
    for kind, key in told:
        if kind == "stored":
            assert await pages.get(key) is not None
    database.close()


def _lost(database: Database, told: Counter[tuple[str, int]]) -> Iterator[str]:
    """What was told, and is not there. An admitted request may have been evicted since, a finished one never."""
    states = dict(database.connection.execute("SELECT request_key, state FROM request"))
    done = {key for kind, key in told if kind == "done"}
    yield from (f"request {key} was done and is in state {states.get(key)}" for key in done if states.get(key) != 3)
    pages = {row[0] for row in database.connection.execute("SELECT document_key FROM page")}
    yield from (f"page {key} was stored" for kind, key in told if kind == "stored" and key not in pages)


def faults(database: Database) -> Iterator[str]:
    """Every place where a counter or an index does not say what the rows say."""
    run = database.connection.execute
    if run("PRAGMA integrity_check").fetchall() != [("ok",)]:
        yield "integrity_check"
    run("INSERT INTO chunk_text (chunk_text) VALUES ('integrity-check')")
    for name, query in AGREEMENTS.items():
        yield from (f"{name}: {row}" for row in run(query).fetchall())
    charged, pages_max = run("SELECT charged, pages_max FROM crawl").fetchone()
    if charged > pages_max or pages_max != PAGES_MAX:
        yield f"charged {charged} of {pages_max}"
    stored = set(run("SELECT space, band, seq, simhash FROM band"))
    expected = {
        (space, band, seq, simhash)
        for space, seq, simhash in run("SELECT space, seq, simhash FROM fingerprint WHERE near = 1")
        for band in bands(simhash)
    }
    if stored != expected:
        yield f"bands: {stored ^ expected}"


AGREEMENTS = {
    "crawl": """SELECT c.crawl, c.queued, c.waiting, c.leased, c.charged, sum(r.state < 2), sum(r.state = 0),
        sum(r.state = 2), sum(r.charge > 0) FROM crawl c JOIN request r ON r.purse / 2 = c.crawl GROUP BY c.crawl
        HAVING c.queued <> sum(r.state < 2) OR c.waiting <> sum(r.state = 0) OR c.leased <> sum(r.state = 2)
        OR c.charged <> sum(r.charge > 0)""",
    "outcomes": """SELECT * FROM (SELECT name, count FROM crawl_count WHERE kind = 'outcome' AND count > 0
        EXCEPT SELECT ended, count(*) FROM request WHERE ended IS NOT NULL GROUP BY ended) UNION ALL
        SELECT * FROM (SELECT ended, count(*) FROM request WHERE ended IS NOT NULL GROUP BY ended
        EXCEPT SELECT name, count FROM crawl_count WHERE kind = 'outcome')""",
    "origin": """SELECT o.origin, o.queued, o.leased, ifnull(sum(r.state < 2), 0) q, ifnull(sum(r.state = 2), 0) s
        FROM origin o LEFT JOIN lane l USING (origin_id) LEFT JOIN request r ON r.lane = l.lane
        GROUP BY o.origin_id HAVING o.queued <> q OR o.leased <> s""",
    "lane": """SELECT l.lane, l.due, l.waiting, ifnull(sum(r.state = 1), 0) d, ifnull(sum(r.state = 0), 0) w
        FROM lane l LEFT JOIN request r ON r.lane = l.lane GROUP BY l.lane HAVING l.due <> d OR l.waiting <> w""",
    "place": """SELECT l.lane, l.place, l.due, o.leased FROM lane l JOIN origin o USING (origin_id)
        WHERE (l.place IN (1, 2)) <> (l.due > 0 AND o.fresh = 1 AND o.leased < o.concurrency_max)""",
    "purse": """SELECT r.seq FROM request r JOIN lane l ON l.lane = r.lane
        WHERE r.purse <> l.purse OR r.purse % 2 <> (r.charge > 0)""",
    "lease": "SELECT seq FROM request WHERE (state = 2) <> (fetch_id <> 0)",
    "template": """SELECT t.template FROM template t LEFT JOIN request r ON r.template = t.template
        GROUP BY t.template HAVING t.admitted < count(r.seq) OR t.duplicates > t.results""",
    "size": """SELECT name, count FROM size WHERE count <> CASE name WHEN 'page' THEN (SELECT count(*) FROM page)
        WHEN 'chunk' THEN (SELECT count(*) FROM chunk) WHEN 'fingerprint' THEN (SELECT count(*) FROM fingerprint)
        WHEN 'withdrawn' THEN (SELECT count(*) FROM withdrawn)
        WHEN 'withdrawn_page' THEN (SELECT count(*) FROM withdrawn_page) ELSE -1 END""",
    "vector": "SELECT seq FROM chunk WHERE seq NOT IN (SELECT seq FROM vector) UNION ALL"
    " SELECT seq FROM vector WHERE seq NOT IN (SELECT seq FROM chunk)",
    "spill": "SELECT min(seq), max(seq), count(*) FROM spill HAVING count(*) <> max(seq) - min(seq) + 1",
}
