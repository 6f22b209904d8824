"""The commands for a deployed system, against real servers."""

import asyncio
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.contract.requests import admit, open_origin, request
from tests.e2e.running import ROOT, Ran, trawl
from tests.integration.kafka import messages_on, sending, topics_of, without_topics
from tests.servers import KafkaServer, OpenSearchServer, RedisServer, Registry
from trawl.adapters.blobs import FileBlobStore
from trawl.adapters.embedders import WordllamaEmbedder
from trawl.adapters.kafka import open_codec
from trawl.adapters.opensearch import OpenSearchSearchIndex
from trawl.adapters.opensearch import connect as connect_opensearch
from trawl.adapters.redis import RedisFrontierStore, ShardLeases
from trawl.adapters.redis import connect as connect_redis
from trawl.kinds import DedupScope, ScopeKind, SeedKind, Stage
from trawl.pipeline import HOST_SHARDS, TOPIC, TOPICS
from trawl.ports import Chunk, CrawlPolicy
from trawl.records import DeadLetter, Payload, Record, Seed
from trawl.settings import KafkaSettings, Settings, load

T = TypeVar("T")
OPTIONS = {
    ("seed",): (
        "URL", "--from-file", "--crawl", "--kind", "auto|page|sitemap|feed|url_list", "--scope", "--allow-domain",
        "--depth", "--max-pages", "--priority", "--dedup-scope", "--tag", "--kafka", "--config", "--json",
    ),
    ("topics",): ("--check", "--kafka", "--config", "--json"),
    ("dlq",): ("list", "show", "replay"),
    ("dlq", "list"): ("--stage", "--reason", "--topic", "--since", "--limit", "--kafka", "--config", "--json"),
    ("dlq", "show"): ("NUMBER", "--payload", "--kafka", "--config", "--json"),
    ("dlq", "replay"): ("NUMBER", "--all", "--again", "--stage", "--reason", "--topic", "--since", "--kafka", "--json"),
    ("status",): ("--kafka", "--redis", "--crawl", "--seconds"),
    ("search",): ("--opensearch", "--crawl"),
}  # fmt: skip


@pytest.mark.parametrize("command", OPTIONS, ids=" ".join)
def test_help_names_every_option(command: tuple[str, ...]) -> None:
    ran = trawl(*command, "--help")
    assert ran.code == 0
    assert [option for option in OPTIONS[command] if option not in ran.out] == []


@dataclass(frozen=True)
class Deployed:
    """A deployment of its own at the servers."""

    variables: dict[str, str]
    folder: Path

    @property
    def settings(self) -> Settings:
        return load({}, self.variables)

    @property
    def kafka(self) -> KafkaSettings:
        return self.settings.kafka

    def run(self, *arguments: str | Path, **more: Any) -> Ran:
        """A command, told by variables where the deployment is."""
        return trawl(*arguments, env={**self.variables, **more.pop("env", {})}, cwd=self.folder, **more)

    def records(self, topic: str) -> list[Record]:
        return asyncio.run(self._records(topic))

    async def _records(self, topic: str) -> list[Record]:
        codec = await open_codec(self.kafka, blobs=None)
        return [
            one
            for found in await messages_on(self.kafka, topic)
            for one in await codec.decode(TOPIC[topic], found.value)
        ]

    def send(self, *records: Record) -> None:
        asyncio.run(self._send(records))

    async def _send(self, records: tuple[Record, ...]) -> None:
        async with sending(self.kafka, FileBlobStore(self.folder / "blobs")) as (_, producer):
            await producer.send(records)

    def messages(self, topic: str) -> list[tuple[int, bytes | None, bytes]]:
        """Partition, key and value of all messages of a topic."""
        return [(one.partition, one.key, one.value) for one in asyncio.run(messages_on(self.kafka, topic))]


@pytest.fixture
def empty(kafka_server: KafkaServer, tmp_path: Path) -> Iterator[Deployed]:
    """A broker without Trawl's topics."""
    prefix = f"c{random.randrange(10**9)}"
    variables = {
        "TRAWL_KAFKA_BOOTSTRAP_SERVERS": kafka_server.bootstrap,
        "TRAWL_KAFKA_PARTITIONS": "4",
        "TRAWL_KAFKA_GROUP_PREFIX": prefix,
        "TRAWL_KAFKA_REQUEST_SECONDS_MAX": "3",
        "TRAWL_REDIS_PREFIX": prefix,
        "TRAWL_OPENSEARCH_PREFIX": prefix,
    }
    found = Deployed(variables, tmp_path)
    asyncio.run(without_topics(found.kafka))
    yield found
    asyncio.run(without_topics(found.kafka))


@pytest.fixture
def deployed(empty: Deployed) -> Deployed:
    """The same with its topics."""
    asyncio.run(_with_topics(empty.kafka))
    return empty


async def _with_topics(settings: KafkaSettings) -> None:
    context = topics_of(settings)
    await context.__aenter__()  # the fixture deletes them


# topics


def test_topics_are_made_and_checked(empty: Deployed) -> None:
    ran = empty.run("topics", "--check", "--json")
    assert (ran.code, ran.summary["made"], len(ran.summary["differences"])) == (1, [], len(TOPICS))
    ran = empty.run("topics")
    assert ran.code == 0, ran.err
    assert ran.out.splitlines() == [f"made {topic.name}" for topic in TOPICS]
    ran = empty.run("topics")
    assert (ran.code, ran.out) == (0, "all topics are as they should be\n")
    ran = empty.run("topics", "--check", env={"TRAWL_KAFKA_PARTITIONS": "5"})
    assert ran.code == 1
    assert "trawl.seeds has 4 partitions, not 5" in ran.out


# seed


def test_seeds_are_published_with_what_the_options_say(deployed: Deployed) -> None:
    ran = deployed.run("seed", "HTTP://A.test:80/x#y", "http://b.test/", "--json")
    assert ran.code == 0, ran.err
    assert ran.summary == {"crawl_id": "default", "published": 2, "notes": []}
    options = (
        "--crawl docs --kind sitemap --scope domain --allow-domain c.test --allow-domain d.test --depth 3"
        " --max-pages 50 --priority 0.9 --dedup-scope global --tag one --tag two"
    )
    ran = deployed.run("seed", "http://c.test/sitemap.xml", *options.split())
    assert ran.out == "1 seed published for the crawl 'docs'\n"
    found = {seed.url: replace(seed, submitted_at_ms=0) for seed in seeds(deployed)}
    assert found == {
        "http://a.test/x": Seed(url="http://a.test/x"),
        "http://b.test/": Seed(url="http://b.test/"),
        "http://c.test/sitemap.xml": Seed(
            url="http://c.test/sitemap.xml",
            kind=SeedKind.SITEMAP,
            crawl_id="docs",
            scope=ScopeKind.DOMAIN,
            allowed_domains=("c.test", "d.test"),
            depth_max=3,
            pages_max=50,
            priority=0.9,
            dedup_scope=DedupScope.GLOBAL,
            tags=("one", "two"),
        ),
    }
    assert all(seed.submitted_at_ms > 1_700_000_000_000 for seed in seeds(deployed))


def seeds(deployed: Deployed) -> list[Seed]:
    return [one for one in deployed.records("trawl.seeds") if isinstance(one, Seed)]


def test_seeds_are_read_from_a_file_and_from_standard_input(deployed: Deployed, tmp_path: Path) -> None:
    path = tmp_path / "urls.txt"
    path.write_text("http://a.test/ # the first\n\nno url\nhttp://b.test/\n")
    ran = deployed.run("seed", "--from-file", path)
    assert ran.code == 0, ran.err
    assert "2 seeds published" in ran.out
    assert "line 3" in ran.out
    many = "".join(f"http://c.test/{number}\n" for number in range(2500))
    assert deployed.run("seed", "--from-file", "-", "--json", given=many).summary["published"] == 2500
    assert len({seed.url for seed in seeds(deployed)}) == 2502


def test_a_seed_that_cannot_be_is_not_published(deployed: Deployed) -> None:
    for arguments, told in (
        ((), "nothing to publish"),
        (("example.com",), "did you mean https://example.com"),
        (("http://a.test/", "--from-file", "none.txt"), "none.txt"),
    ):
        ran = deployed.run("seed", *arguments)
        assert ran.code == 2
        assert told in ran.err
    assert deployed.records("trawl.seeds") == []


def test_the_option_wins_over_the_variable_and_a_missing_topic_is_told(
    empty: Deployed, kafka_server: KafkaServer
) -> None:
    away = {"TRAWL_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1"}
    ran = empty.run("seed", "http://a.test/", "--kafka", kafka_server.bootstrap, env=away)
    assert ran.code == 3
    assert "a topic is missing" in ran.err
    assert "trawl topics" in ran.err


# dlq


BAD = b'{"address": "http://a.test/"}'


def letter(data: bytes, reason: str = "RecordDecodeError", **fields: Any) -> DeadLetter:
    known = {"topic": "trawl.seeds", "partition": 3, "offset": 17, "key": b"", "stage": Stage.FRONTIER, **fields}
    return DeadLetter(
        reason=reason,
        payload=Payload(inline=data, size_bytes=len(data)),
        error="Traceback:\n\x1b[31mit broke\x1b[0m",
        at_ms=1_700_000_000_000,
        **known,
    )


def test_dead_letters_are_listed_shown_and_sent_again_once(deployed: Deployed) -> None:
    assert deployed.run("dlq", "list").out == "0 dead letters, 0 never sent again\n"
    large = os.urandom(1_200_000)
    deployed.send(
        letter(BAD),
        letter(b"http://b.test/"),
        letter(large, "Boom", topic="trawl.fetched", key=b"k", stage=Stage.EXTRACTOR),
    )
    listed = deployed.run("dlq", "list", "--json").summary
    assert [one["number"] for one in listed["letters"]] == [0, 1, 2]
    assert (listed["matching"], listed["never_replayed"], listed["unreadable"]) == (3, 3, 0)
    assert (listed["letters"][2]["reason"], listed["letters"][2]["payload_bytes"]) == ("Boom", 1_200_000)
    people = deployed.run("dlq", "list", "--stage", "extractor").out
    assert "trawl.fetched[3]@17" in people
    assert "1 dead letter, 1 never sent again" in people
    assert deployed.run("dlq", "list", "--reason", "Boom", "--limit", "1", "--json").summary["matching"] == 1

    shown = deployed.run("dlq", "show", "1", "--json").summary
    assert shown["records"] == [{"Seed": {**shown["records"][0]["Seed"], "url": "http://b.test/"}}]
    shown = deployed.run("dlq", "show", "0", "--json").summary
    assert shown["records"] == []
    assert "no field 'address'" in shown["unreadable"]
    people = deployed.run("dlq", "show", "0").out
    assert "it broke" in people
    assert "\x1b" not in people
    assert BAD[:20].hex(" ") in people
    raw = deployed.run("dlq", "show", "0", "--payload").out
    assert raw == BAD.decode()

    ran = deployed.run("dlq", "replay", "1", "--json")
    assert ran.summary == {"sent": [1], "sent_before": [], "refused": [], "unreadable": 0}
    ran = deployed.run("dlq", "replay", "--all")
    assert ran.code == 0
    assert "2 dead letters sent again" in ran.out
    assert "1 left out, since sent again before" in ran.out
    assert deployed.run("dlq", "replay", "--all", "--json").summary == {
        "sent": [], "sent_before": [0, 1, 2], "refused": [], "unreadable": 0
    }  # fmt: skip
    assert sorted(deployed.messages("trawl.seeds")) == [(3, None, b"http://b.test/"), (3, None, BAD)]
    assert deployed.messages("trawl.fetched") == [(3, b"k", large)]
    assert deployed.run("dlq", "replay", "1", "--again", "--json").summary["sent"] == [1]
    assert "sent again 20" in deployed.run("dlq", "list").out


def test_letters_whose_schema_only_a_registry_knows_are_told(deployed: Deployed, registry_server: Registry) -> None:
    registry = {"TRAWL_KAFKA_REGISTRY_URL": registry_server.url}
    asyncio.run(_send_framed(load({}, {**deployed.variables, **registry}), letter(BAD)))
    for code, arguments in ((1, ("list",)), (2, ("show", "0")), (1, ("replay", "0")), (1, ("replay", "--all"))):
        ran = deployed.run("dlq", *arguments)
        assert ran.code == code, (arguments, ran)
        assert "cannot be read as a dead letter; if the services use a schema registry" in ran.out + ran.err
    assert "RecordDecodeError" in deployed.run("dlq", "show", "0", env=registry).out


async def _send_framed(settings: Settings, *letters: DeadLetter) -> None:
    async with sending(settings.kafka, None) as (_, producer):
        await producer.send(letters)


def test_what_cannot_be_sent_again_is_told(deployed: Deployed) -> None:
    deployed.send(letter(b"x", topic="shop.orders"))
    ran = deployed.run("dlq", "replay", "0", "5")
    assert ran.code == 1
    assert "0 cannot be sent: the letter comes from 'shop.orders'" in ran.out
    assert "5 cannot be sent: there is no such dead letter" in ran.out
    ran = deployed.run("dlq", "replay")
    assert ran.code == 2
    assert "--all" in ran.err
    ran = deployed.run("dlq", "show", "9")
    assert ran.code == 2
    assert "no dead letter 9" in ran.err


# status


def test_status_tells_lag_and_who_is_stuck(deployed: Deployed, kafka_server: KafkaServer) -> None:
    deployed.send(*(Seed(url=f"http://h{number}.test/") for number in range(5)), letter(b"x"))
    status = ("status", "--kafka", kafka_server.bootstrap, "--seconds", "0.1")
    found = deployed.run(*status, "--json").summary
    assert [group["stage"] for group in found["groups"]] == [str(stage) for stage in Stage]
    frontier = found["groups"][0]
    assert (frontier["stuck"], frontier["members"]) == (True, 0)
    assert frontier["group"] == f"{deployed.kafka.group_prefix}-frontier"
    assert {topic["topic"]: topic["lag_records"] for topic in frontier["topics"]} == {
        "trawl.seeds": 5, "trawl.discovered": 0, "trawl.outcomes": 0, "trawl.control": 0
    }  # fmt: skip
    assert found["topics"]["trawl.seeds"] == 5
    assert "frontier" not in found
    people = deployed.run(*status).out
    assert "frontier is stuck" in people
    assert "is it running?" in people
    assert "1 message on trawl.dead-letters, letters and notes of what was sent again; trawl dlq list" in people
    assert "unread: not committed yet" in people


def test_status_tells_queues_and_hosts_in_back_off(
    deployed: Deployed, kafka_server: KafkaServer, redis_server: RedisServer
) -> None:
    asyncio.run(
        _fill_frontier(replace(deployed.settings, redis=replace(deployed.settings.redis, url=redis_server.url)))
    )
    status = (
        "status",
        "--kafka",
        kafka_server.bootstrap,
        "--redis",
        redis_server.url,
        "--seconds",
        "0",
        "--crawl",
        "c",
    )
    frontier = deployed.run(*status, "--json").summary["frontier"]
    assert (frontier["crawl_id"], frontier["queued"], frontier["leased"]) == ("c", 3, 0)
    assert {host["origin"]: host["queued"] for host in frontier["hosts"]} == {"http://a.test": 2, "http://b.test": 1}
    (waiting,) = frontier["hosts_in_backoff"]
    assert (waiting["origin"], waiting["failures"]) == ("http://b.test", 4)
    assert waiting["waits_seconds"] > 1000
    people = deployed.run(*status).out
    assert "crawl 'c': 3 URLs queued, 0 in flight, 0 of 9 pages of its budget charged\n" in people
    assert "  2  out_of_scope" in people
    assert "hosts of all crawls, most queued first" in people
    assert people.partition("hosts in back-off")[2].count("http://b.test") == 1
    other = deployed.run(*status[:-1], "other")
    assert other.code == 1
    assert "no seed of a crawl 'other' has come to the frontier; there are: c\n" in other.out
    assert "http://a.test" in other.out


async def _fill_frontier(settings: Settings) -> None:
    client = connect_redis(settings.redis)
    try:
        store = RedisFrontierStore(client)
        store.own(await ShardLeases(client).acquire(range(HOST_SHARDS)))
        await store.put_crawl(CrawlPolicy(crawl_id="c", pages_max=9))
        await store.count_refusals("c", "out_of_scope", 2)
        await admit(store, *(request(url) for url in ("http://a.test/1", "http://a.test/2", "http://b.test/1")))
        await open_origin(store, "http://a.test")
        await open_origin(store, "http://b.test", blocked_until_ms=10**13, failures=4)
    finally:
        await client.close()


def test_status_of_servers_that_are_away_and_of_two_places_at_once(
    deployed: Deployed, kafka_server: KafkaServer
) -> None:
    away = deployed.run("status", "--kafka", "127.0.0.1:1")
    assert away.code == 3
    assert away.err.startswith("trawl: looking at consumer groups: Kafka does not answer at 127.0.0.1:1")
    assert len(away.err.splitlines()) == 1
    away = deployed.run("status", "--kafka", kafka_server.bootstrap, "--redis", "redis://127.0.0.1:1", "--seconds", "0")
    assert away.code == 3
    assert "Redis does not answer at redis://127.0.0.1:1" in away.err
    assert deployed.run("status", "somewhere", "--kafka", kafka_server.bootstrap).code == 2
    assert deployed.run("status", "--redis", "redis://127.0.0.1:1").code == 2


# search


def test_search_of_the_deployed_index(deployed: Deployed, opensearch_server: OpenSearchServer) -> None:
    url = opensearch_server.url
    settings = replace(deployed.settings, opensearch=replace(deployed.settings.opensearch, url=url))
    ran = deployed.run("search", "bowline", "--opensearch", url)
    assert ran.code == 3
    assert f"has no index {settings.opensearch.prefix}-chunks" in ran.err
    asyncio.run(_fill_index(settings))
    ran = deployed.run("search", "bowline", "--opensearch", url, "--json")
    assert ran.code == 0, ran.err
    assert ran.answer[0]["url"] == "http://a.test/knots"
    meaning = deployed.run("search", "biggest", "creature", "--opensearch", url, "--limit", "1", "--json")
    assert [hit["url"] for hit in meaning.answer] == ["http://a.test/whales"]
    other = deployed.run("search", "bowline", "--opensearch", url, "--crawl", "other")
    assert (other.code, other.err) == (1, "nothing found\n")
    assert "http://a.test/knots" in deployed.run("search", "bowline", "--opensearch", url).out


async def _fill_index(settings: Settings) -> None:
    client, embedder = connect_opensearch(settings.opensearch), WordllamaEmbedder()
    try:
        index = OpenSearchSearchIndex(client, settings.opensearch, refresh=True)
        await index.open(embedder.name, embedder.dimensions)
        texts = {
            "whales": "The blue whale is the largest animal that has ever lived on Earth.",
            "knots": "A bowline makes a loop that neither slips nor jams.",
        }
        chunks = [
            Chunk(
                chunk_id=number, document_key=number, crawl_id="c", url=f"http://a.test/{name}", title=name,
                heading_path=(), text=text, position=0, fetched_at_ms=1,
            )
            for number, (name, text) in enumerate(texts.items())
        ]  # fmt: skip
        await index.upsert(chunks, await embedder.embed([chunk.text for chunk in chunks]))
    finally:
        await client.close()


def test_search_of_an_index_that_is_away_or_of_two_places_at_once(tmp_path: Path) -> None:
    ran = trawl("search", "x", "--opensearch", "http://127.0.0.1:1", cwd=tmp_path)
    assert ran.code == 3
    assert "OpenSearch does not answer at http://127.0.0.1:1" in ran.err
    assert trawl("search", "x", "--opensearch", "http://127.0.0.1:1", "--dir", "d", cwd=tmp_path).code == 2
    assert trawl("search", "x", "--crawl", "c", cwd=tmp_path).code == 2


# What a plain installation lacks, and what a person may get wrong


@pytest.mark.parametrize(
    ("package", "extra", "command"),
    [
        ("aiokafka", "kafka", ("seed", "http://a.test/")),
        ("aiokafka", "kafka", ("topics",)),
        ("aiokafka", "kafka", ("dlq", "list")),
        ("aiokafka", "kafka", ("status", "--kafka", "127.0.0.1:1")),
        ("fastavro", "kafka", ("dlq", "replay", "--all")),
        ("opensearchpy", "opensearch", ("search", "x", "--opensearch", "http://127.0.0.1:1")),
    ],
)
def test_a_missing_extra_is_named_with_its_command(
    package: str, extra: str, command: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / f"{package}.py").write_text(f"raise ModuleNotFoundError(\"No module named '{package}'\")\n")
    ran = trawl(*command, env={"PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])})
    assert ran.code == 2
    assert f"No module named '{package}'" in ran.err
    assert f"pip install 'trawl[{extra}]'" in ran.err
    assert len(ran.err.splitlines()) == 1


@pytest.mark.parametrize("broker", ["localhost", ":9092", "a:b", ""])
def test_a_broker_that_is_no_address_is_told(broker: str) -> None:
    for command in (("seed", "http://a.test/"), ("topics",), ("dlq", "list")):
        ran = trawl(*command, "--kafka", broker)
        assert ran.code == 2
        assert "--kafka" in ran.err
