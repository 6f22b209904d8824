"""A deployment whose Redis loses everything, what it had crawled before, and what comes afterwards."""

import asyncio
import hashlib
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tests.contract.requests import admit, completion, lease, open_origin
from tests.e2e.running import Ran, trawl
from trawl.adapters.clocks import ManualClock
from trawl.adapters.opensearch import OpenSearchClient, OpenSearchPageStore
from trawl.adapters.redis import RedisClient, RedisFingerprintIndex, RedisFrontierStore, ShardLeases
from trawl.adapters.redis import connect as connect_redis
from trawl.dedup.stage import DedupStage
from trawl.frontier.score import score
from trawl.kinds import DedupScope, Found, Purpose, RenderMode
from trawl.pipeline import HOST_SHARDS
from trawl.ports import CrawlPolicy, Request, StoredPage
from trawl.records import ExtractedDocument, FetchOutcome, UniqueDocument, Validators
from trawl.settings import Settings, load
from trawl.url import document_key, fetch_id, origin_of, request_key, template, template_key

HOSTS = [f"h{number}.example" for number in range(40)]


@dataclass(frozen=True)
class Side:
    """A deployment's Redis, by its prefix; several share one page store."""

    variables: dict[str, str]
    client: RedisClient
    pages: OpenSearchPageStore

    @property
    def settings(self) -> Settings:
        return load({}, self.variables)

    @property
    def index(self) -> RedisFingerprintIndex:
        return RedisFingerprintIndex(self.client, self.settings.redis)

    @property
    def gate(self) -> DedupStage:
        return DedupStage(self.index, self.settings.dedup, ManualClock(10**12))

    async def frontier(self) -> RedisFrontierStore:
        """A frontier that has taken all shards over, as one does that starts."""
        store = RedisFrontierStore(self.client, shards=HOST_SHARDS, forgets_done=True)
        store.own(await ShardLeases(self.client).acquire(range(HOST_SHARDS)))
        return store

    async def rebuild(self, *options: str, **variables: str) -> Ran:
        return await asyncio.to_thread(trawl, "rebuild", *options, env={**self.variables, **variables})

    async def state(self) -> dict[bytes, bytes]:
        """All that Redis holds, by key without its prefix."""
        prefix = self.variables["TRAWL_REDIS_PREFIX"].encode()
        keys = [key async for key in self.client.scan(f"{prefix.decode()}:*")]
        return {key.removeprefix(prefix): await self.client.ask("DUMP", key) for key in keys}

    async def lose(self) -> None:
        """Everything is gone."""
        keys = [key async for key in self.client.scan(f"{self.variables['TRAWL_REDIS_PREFIX']}:*")]
        for key in keys:
            await self.client.ask("DEL", key)


def side(redis: str, opensearch_url: str, prefix: str, name: str, client: OpenSearchClient, **more: str) -> Side:
    variables = {
        "TRAWL_REDIS_URL": redis,
        "TRAWL_REDIS_PREFIX": f"{prefix}{name}",
        "TRAWL_OPENSEARCH_URL": opensearch_url,
        "TRAWL_OPENSEARCH_PREFIX": prefix,
        **more,
    }
    settings = load({}, variables)
    return Side(variables, connect_redis(settings.redis), OpenSearchPageStore(client, settings.opensearch))


# What is crawled


def simhash_of(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big", signed=True)


def flipped(simhash: int, bits: Iterable[int]) -> int:
    word = simhash % 2**64
    for bit in bits:
        word ^= 1 << bit
    return word - 2**64 if word >= 2**63 else word


def fetched(
    url: str, text: str, *, crawl_id: str = "once", at_ms: int = 1000, simhash: int | None = None, asked: str = "",
    purpose: Purpose = Purpose.PAGE, **fields: Any,
) -> ExtractedDocument:  # fmt: skip
    """A document as the extractor makes it."""
    key = request_key(crawl_id, asked or url)
    known = ExtractedDocument(
        document_key=document_key(crawl_id, url),
        crawl_id=crawl_id,
        request_key=key,
        fetch_id=fetch_id(key, purpose, RenderMode.STATIC, at_ms),
        url=asked or url,
        final_url=url,
        fetched_at_ms=at_ms + 5,
        status=200,
        text=text,
        content_sha256=hashlib.sha256(text.encode()).hexdigest(),
        simhash=simhash_of(text) if simhash is None else simhash,
        simhash_tokens=100,
        fingerprint_version=1,
        crawl_source="link",
        depth=1,
        scheduled_at_ms=at_ms,
        validators=Validators(etag=f'"{text}"'),
    )
    return replace(known, **fields)


async def take(one: Side, *documents: ExtractedDocument) -> None:
    """What the duplicate gate and the indexer make of documents."""
    for document in documents:
        for record in await one.gate.step(document):
            if not isinstance(record, UniqueDocument):
                continue
            made = record.document
            if made.withdrawal:
                await one.pages.delete(made.document_key, fetched_at_ms=made.fetched_at_ms)
            else:
                await one.pages.put(StoredPage(document=made, chunks=(1,), indexed_at_ms=made.fetched_at_ms + 7))
                await one.index.commit(made.document_key, made.fetch_id)


async def verdicts(one: Side, documents: Sequence[ExtractedDocument]) -> list[tuple[Any, ...]]:
    """What becomes of documents, without what only tells the time of day."""
    told: list[tuple[Any, ...]] = []
    for document in documents:
        for record in await one.gate.step(document):
            if isinstance(record, FetchOutcome):
                told.append((record.url, record.outcome, record.reason, record.duplicate_of_url, record.detail))
            elif isinstance(record, UniqueDocument):
                before = (record.previous_sha256, record.previous_simhash)
                told.append((record.document.final_url, record.novelty, record.document.withdrawal, *before))
                if not record.document.withdrawal:
                    await one.index.commit(record.document.document_key, record.document.fetch_id)
    return told


def a_corpus(seed: int) -> list[ExtractedDocument]:
    """Pages of several crawls and scopes: distinct, equal, nearly equal, changed later, withdrawn, redirected to."""
    chance = random.Random(seed)
    made: list[ExtractedDocument] = []
    for number in range(90):
        crawl_id, scope = chance.choice((
            ("once", DedupScope.CRAWL), ("often", DedupScope.CRAWL), ("g1", DedupScope.GLOBAL),
            ("g2", DedupScope.GLOBAL), ("manual", DedupScope.PREFIX), ("all", DedupScope.NONE),
        ))  # fmt: skip
        url = f"https://{chance.choice(HOSTS)}/v{number % 2}/{number}"
        fields: dict[str, Any] = {"crawl_id": crawl_id, "dedup_scope": scope, "at_ms": 1000 + number}
        made.append(fetched(url, f"text {number}", simhash_tokens=chance.choice((100, 100, 5)), **fields))
        if chance.random() < 0.3:  # a copy, exact or near
            near = flipped(simhash_of(f"text {number}"), chance.sample(range(64), 2))
            text, simhash = (f"text {number}", None) if chance.random() < 0.5 else (f"text {number}.", near)
            made.append(fetched(f"{url}/copy", text, simhash=simhash, **fields))
        if chance.random() < 0.3:  # another version
            made.append(fetched(url, f"text {number} changed", **{**fields, "at_ms": 5000 + number}))
        if chance.random() < 0.2:
            gone = fetched(url, "", **{**fields, "at_ms": 9000 + number})
            made.append(replace(gone, withdrawal="gone"))
        if chance.random() < 0.2:
            made.append(fetched(f"{url}/end", f"text {number} end", asked=f"{url}/begin", **fields))
    return made


def probes(corpus: Sequence[ExtractedDocument], seed: int) -> list[ExtractedDocument]:
    """What comes afterwards: pages again with the same text or another, older fetches, copies, aliases."""
    chance = random.Random(seed)
    made: list[ExtractedDocument] = []
    for number, known in enumerate(chance.sample([one for one in corpus if not one.withdrawal], 80)):
        at_ms = chance.choice((500, 4000, 7000, 20_000)) + number
        text = chance.choice((known.text, f"other {number}"))
        url = chance.choice((known.final_url, f"{known.final_url}/probe"))
        asked = chance.choice((url, url, f"{url}/alias"))
        if url.endswith("/copy"):  # a duplicate, of which older fetches are superseded afterwards
            at_ms += 20_000
        bits = chance.sample(range(64), chance.choice((0, 1, 2, 3, 4)))
        fields: dict[str, Any] = {
            "crawl_id": known.crawl_id,
            "dedup_scope": known.dedup_scope,
            "simhash_tokens": known.simhash_tokens,
        }
        made.append(
            fetched(url, text, asked=asked, at_ms=at_ms, simhash=flipped(simhash_of(known.text), bits), **fields)
        )
    return made


# The frontier


def asked_for(url: str, policy: CrawlPolicy, **fields: Any) -> Request:
    """A request as the frontier admits it."""
    known = Request(
        request_key=request_key(policy.crawl_id, url),
        crawl_id=policy.crawl_id,
        url=url,
        origin=origin_of(url),
        template=template_key(template(url)),
        found=Found.LINK,
        depth=1,
        score=score(depth=1),
        scheduled_at_ms=1000,
        due_at_ms=1000,
    )
    return replace(known, **fields)


async def crawl(one: Side, policy: CrawlPolicy, urls: Sequence[str], fetches: int) -> list[str]:
    """Crawl so many of these URLs, the first as a seed; those that were fetched."""
    store = await one.frontier()
    await store.put_crawl(policy)
    for origin in {origin_of(url) for url in urls}:
        await open_origin(store, origin)
    requests = [asked_for(url, policy) for url in urls]
    requests[0] = replace(requests[0], found=Found.SEED, depth=0, score=score(depth=0), purpose=Purpose.AUTO)
    assert all(await admit(store, *requests))
    done: list[str] = []
    for leased in await lease(store, 1000, fetches):
        page = fetched(
            leased.url, f"{leased.crawl_id} {leased.url}", crawl_id=leased.crawl_id, purpose=leased.purpose,
            crawl_source=str(leased.found), depth=leased.depth,
        )  # fmt: skip
        assert page.fetch_id == leased.fetch_id
        await take(one, page)
        fields: dict[str, Any] = {
            "status": 200,
            "validators": page.validators,
            "document_key": page.document_key,
            "duplicate": False,
        }
        ended = completion(leased, at_ms=page.fetched_at_ms + 7, **fields)
        assert await store.complete(ended)
        done.append(leased.url)
    return done


def urls_of(count: int) -> list[str]:
    return [f"https://{HOSTS[number % len(HOSTS)]}/a/{number}" for number in range(count)]


async def reseeded(one: Side, policy: CrawlPolicy, urls: Sequence[str]) -> RedisFrontierStore:
    """A frontier after its seeds were published again, and robots.txt was fetched."""
    store = await one.frontier()
    await store.put_crawl(policy)
    for origin in {origin_of(url) for url in urls}:
        await open_origin(store, origin)
    return store
