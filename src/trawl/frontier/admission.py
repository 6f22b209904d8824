"""From a discovered link to a request, or to the named reason why not: the pure part of admission."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from trawl.errors import InvalidUrlError
from trawl.frontier.score import score
from trawl.frontier.traps import static_trap
from trawl.kinds import LIST_PURPOSES, Purpose, ScopeKind, SeedKind
from trawl.ports import CrawlPolicy, Request, SeedScope
from trawl.records import DiscoveredLinks, Link, Millis, Seed
from trawl.settings import Settings
from trawl.url import CanonicalRules, Scope, canonical, host_of, origin_of, request_key, template, template_key

_NOT_FOLLOWED = frozenset({"nofollow", "ugc", "sponsored"})

PURPOSES = {
    SeedKind.AUTO: Purpose.AUTO,
    SeedKind.PAGE: Purpose.PAGE,
    SeedKind.SITEMAP: Purpose.SITEMAP,
    SeedKind.FEED: Purpose.FEED,
    SeedKind.URL_LIST: Purpose.URL_LIST,
}
"""What a seed of each kind is fetched for."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A request that passed the pure checks, with what the stateful ones need."""

    request: Request
    template: str


def canonical_rules(settings: Settings) -> CanonicalRules:
    """The rules of the canonical form that the settings ask for."""
    url = settings.url
    return CanonicalRules(url.url_chars_max, url.sort_query, frozenset(url.drop_parameters))


def with_seed(policy: CrawlPolicy | None, seed: Seed, url: str) -> CrawlPolicy:
    """The crawl's policy with one more seed: scopes and tags add up, the latest seed sets the budgets."""
    known = policy or CrawlPolicy(crawl_id=seed.crawl_id)
    scope = SeedScope(url=url, kind=seed.scope, allowed_domains=seed.allowed_domains)
    return replace(
        known,
        scopes=known.scopes if scope in known.scopes else (*known.scopes, scope),
        depth_max=seed.depth_max,
        pages_max=seed.pages_max,
        priority=seed.priority,
        recrawl=seed.recrawl,
        dedup_scope=seed.dedup_scope,
        tags=tuple(dict.fromkeys((*known.tags, *seed.tags))),
    )


@dataclass(frozen=True, slots=True)
class Gate:
    """What one crawl admits, compiled from its policy and the settings."""

    policy: CrawlPolicy
    scopes: tuple[Scope, ...]
    rules: CanonicalRules
    settings: Settings

    @classmethod
    def compile(cls, policy: CrawlPolicy, settings: Settings) -> Self:
        """Compile the policy; seed scopes of one kind and the same allowed domains become one scope."""
        groups: dict[tuple[ScopeKind, tuple[str, ...]], list[str]] = {}
        for seed in policy.scopes:
            groups.setdefault((seed.kind, seed.allowed_domains), []).append(seed.url)
        scopes = tuple(Scope.compile(kind, urls, domains) for (kind, domains), urls in groups.items())
        return cls(policy, scopes, canonical_rules(settings), settings)

    def allows_host(self, host: str) -> bool:
        """Whether any URL of the host can be in scope."""
        return any(scope.allows_host(host) for scope in self.scopes)

    def judge(self, link: Link, found: DiscoveredLinks, now_ms: Millis) -> Candidate | str:
        """The request that a link becomes, or the reason of its refusal, without asking any store.

        Reasons: invalid_url, out_of_scope, too_deep, nofollow, sitemap_too_deep, redirect_loop, too_many_redirects, and
        the traps'.
        """
        try:
            url = canonical(link.url, self.rules)
        except InvalidUrlError:
            return "invalid_url"
        reason = self._refusal(link, found, url)
        if reason is not None:
            return reason
        shape = template(url)
        request = Request(
            request_key=request_key(found.crawl_id, url),
            crawl_id=found.crawl_id,
            url=url,
            origin=origin_of(url),
            template=template_key(shape),
            purpose=link.purpose,
            found=link.found,
            depth=link.depth,
            score=score(depth=link.depth, seed_priority=self.policy.priority, sitemap_priority=link.priority),
            scheduled_at_ms=now_ms,
            due_at_ms=now_ms,
            chain=found.chain,
            chain_request_key=found.chain_request_key,
            lastmod_ms=link.lastmod_ms,
            nesting=link.nesting,
        )
        return Candidate(request, shape)

    def _refusal(self, link: Link, found: DiscoveredLinks, url: str) -> str | None:
        if not any(scope.allows(url) for scope in self.scopes):
            return "out_of_scope"
        if link.depth > self.policy.depth_max:
            return "too_deep"
        if not _NOT_FOLLOWED.isdisjoint(link.rel):
            return "nofollow"
        if link.nesting > self.settings.frontier.sitemap_depth_max + (link.purpose not in LIST_PURPOSES):
            return "sitemap_too_deep"
        if len(found.chain) > self.settings.fetch.redirects_max:
            return "too_many_redirects"
        if any(hop.url == url for hop in found.chain):
            return "redirect_loop"
        trap = static_trap(url, self.settings.frontier, self.settings.url.url_chars_max)
        return None if trap is None else str(trap)


def by_host(crawl_id: str, source_url: str, links: Sequence[Link], rules: CanonicalRules) -> list[DiscoveredLinks]:
    """Links grouped by the host that they point at, in batches of at most 500; links that are no URL are left out."""
    groups: dict[str, list[Link]] = {}
    for link in links:
        try:
            groups.setdefault(host_of(canonical(link.url, rules)), []).append(link)
        except InvalidUrlError:
            continue
    return [
        DiscoveredLinks(crawl_id=crawl_id, source_url=source_url, target_host=host, links=tuple(group[at : at + 500]))
        for host, group in groups.items()
        for at in range(0, len(group), 500)
    ]
