"""The metrics of the services, and the small HTTP server that answers /metrics, /healthz and /readyz.

Labels are bounded: stages, topics, classes and reasons of the closed vocabularies; never a URL or a host.
"""

import logging
from typing import Final

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.process_collector import ProcessCollector

from services.common.health import Health
from trawl.errors import SettingsError
from trawl.kinds import OutcomeClass, Stage
from trawl.records import DeadLetter, FetchedPage, FetchOutcome, FetchTask, IndexedDocument, Record
from trawl.settings import ServiceSettings

_LOG = logging.getLogger(__name__)
_STEP_BUCKETS: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 120)
_LATENCY_BUCKETS: Final = (0.1, 0.25, 0.5, 1, 2, 3, 5, 10, 30, 60, 120, 300, 600, 1800, 3600)


class Metrics:
    """What a service counts and measures, in a registry of its own."""

    def __init__(self, stage: Stage, *, refresh_seconds: float = 0.0) -> None:
        """`refresh_seconds` is how long the search index may take to show what was written to it."""
        self._refresh_seconds = refresh_seconds
        self.registry = own = CollectorRegistry()
        ProcessCollector(registry=own)
        self._stage = str(stage)
        self.info = Gauge("trawl_service_info", "Which stage this process serves; always 1.", ["stage"], registry=own)
        self.info.labels(self._stage).set(1)
        self.ready = Gauge("trawl_ready", "1 while the service takes records, else 0.", registry=own)
        self.records = Counter(
            "trawl_records", "Records that ended, by topic and result (done, known, dead_letter).",
            ["topic", "result"], registry=own,
        )  # fmt: skip
        self.sent = Counter("trawl_sent_records", "Records that a broker acknowledged.", ["topic"], registry=own)
        self.in_flight = Gauge("trawl_in_flight_records", "Records taken and not ended.", registry=own)
        self.step_seconds = Histogram(
            "trawl_step_seconds", "Time that the stage took for one call.", buckets=_STEP_BUCKETS, registry=own
        )
        self.send_seconds = Histogram(
            "trawl_send_seconds", "Time until a broker had acknowledged a call's results.",
            buckets=_STEP_BUCKETS, registry=own,
        )  # fmt: skip
        self.commits = Counter("trawl_commits", "Offsets committed, by topic.", ["topic"], registry=own)
        self.uncommitted = Gauge(
            "trawl_uncommitted_records",
            "The widest span of offsets that a crash would deliver again.",
            registry=own,
        )
        self.stalled_seconds = Gauge(
            "trawl_commit_stalled_seconds",
            "How long records are under way without any commit progress.",
            registry=own,
        )
        self.lag_records = Gauge("trawl_lag_records", "Records behind the end of the topic.", ["topic"], registry=own)
        self.lag_seconds = Gauge(
            "trawl_lag_seconds", "Age of the record taken last, while behind; 0 at the end of the topic.",
            ["topic"], registry=own,
        )  # fmt: skip
        self.letters = Counter("trawl_dead_letters", "Records given up, by typed reason.", ["reason"], registry=own)
        self.outcomes = Counter(
            "trawl_outcomes",
            "Outcomes told to the frontier, by class and reason.",
            ["class", "reason"],
            registry=own,
        )
        self.violations = Counter(
            "trawl_politeness_violations",
            "Fetches that began sooner after the one before than required.",
            registry=own,
        )
        self.violations.inc(0)
        self.fetched_bytes = Counter("trawl_fetched_bytes", "Decoded bytes of fetched bodies.", registry=own)
        self.released = Counter("trawl_released_tasks", "Fetches released, by purpose.", ["purpose"], registry=own)
        self.outstanding = Gauge("trawl_outstanding_tasks", "Fetches released and without an outcome.", registry=own)
        self.chunks = Counter("trawl_chunks", "Chunks by what happened to them.", ["change"], registry=own)
        self.searchable_seconds = Histogram(
            "trawl_release_to_searchable_seconds",
            "Time from the release of a fetch until a search is sure to find its text: written, and one refresh later.",
            buckets=_LATENCY_BUCKETS, registry=own,
        )  # fmt: skip

    def see(self, record: Record) -> None:
        """Count one record that was sent."""
        match record:
            case FetchOutcome():
                self.outcomes.labels(str(record.outcome), record.reason).inc()
                self._gap(record.gap_required_ms, record.gap_actual_ms)
            case FetchedPage():
                self.outcomes.labels("fetched", "").inc()
                self.fetched_bytes.inc(record.body.size_bytes)
                self._gap(record.timings.gap_required_ms, record.timings.gap_actual_ms)
            case FetchTask():
                self.released.labels(str(record.purpose)).inc()
            case IndexedDocument():
                self._indexed(record)
            case DeadLetter():
                self.letters.labels(record.reason).inc()
            case _:
                pass

    def _gap(self, required_ms: int, actual_ms: int | None) -> None:
        if actual_ms is not None and actual_ms < required_ms:
            self.violations.inc()

    def _indexed(self, record: IndexedDocument) -> None:
        for change, keys in (
            ("added", record.chunks_added), ("kept", record.chunks_kept), ("removed", record.chunks_removed)
        ):  # fmt: skip
            self.chunks.labels(change).inc(len(keys))
        if record.latency_ms:
            self.searchable_seconds.observe(record.latency_ms / 1000 + self._refresh_seconds)


class TelemetryServer:
    """Answers /metrics, /healthz and /readyz on loopback, or where the settings say."""

    def __init__(self, metrics: Metrics, health: Health, settings: ServiceSettings) -> None:
        self._metrics = metrics
        self._health = health
        self._settings = settings
        self._runner: web.AppRunner | None = None
        self.port = 0
        """The port, once it is open."""

    async def open(self) -> None:
        """Begin to answer; raises SettingsError if the port cannot be had."""
        application = web.Application()
        application.add_routes([
            web.get("/metrics", self._expose),
            web.get("/healthz", self._alive),
            web.get("/readyz", self._ready),
        ])  # fmt: skip
        self._runner = web.AppRunner(application, access_log=None)
        await self._runner.setup()
        host, port = self._settings.host, self._settings.port
        try:
            await web.TCPSite(self._runner, host, port).start()
        except (OSError, OverflowError) as error:
            await self.close()
            raise SettingsError(f"service.host, service.port = {host}:{port} cannot be opened: {error}") from error
        self.port = int(self._runner.addresses[0][1])
        _LOG.info("metrics and health on http://%s:%d", host, self.port)

    async def close(self) -> None:
        """Stop answering."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _expose(self, _: web.Request) -> web.Response:
        self._metrics.ready.set(self._health.ready[0])
        return web.Response(body=generate_latest(self._metrics.registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def _alive(self, _: web.Request) -> web.Response:
        return _answer(*self._health.alive)

    async def _ready(self, _: web.Request) -> web.Response:
        return _answer(*self._health.ready)


def _answer(good: bool, text: str) -> web.Response:
    return web.Response(status=200 if good else 503, text=f"{text}\n")


OUTCOME_CLASSES: Final = ("fetched", *map(str, OutcomeClass))
"""What the label `class` of trawl_outcomes_total can be."""
