"""From a discovered link to a request, or to the named reason why not: the pure part of admission."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from trawl.errors import InvalidUrlError
from trawl.frontier.score import score
from trawl.frontier.traps import static_trap
from trawl.kinds import LIST_PURPOSES, Found, Purpose, ScopeKind, SeedKind
from trawl.ports import CrawlPolicy, Request, SeedScope
from trawl.records import DiscoveredLinks, Link, Millis, Seed
from trawl.settings import Settings
from trawl.url import CanonicalRules, Scope, canonical, host_of, origin_of, request_key, template, template_key

_NOT_FOLLOWED = frozenset({"nofollow", "ugc", "sponsored"})

_NAMED_BY_SITE = frozenset({Found.ROBOTS, Found.SITEMAP, Found.REDIRECT})
"""Named by robots.txt, by a sitemap, or at the end of a redirect of such a one."""

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


def policy_of(seed: Seed) -> CrawlPolicy:
    """What one seed says of its crawl."""
    return CrawlPolicy(
        crawl_id=seed.crawl_id,
        depth_max=seed.depth_max,
        pages_max=seed.pages_max,
        priority=seed.priority,
        recrawl=seed.recrawl,
        dedup_scope=seed.dedup_scope,
        tags=tuple(dict.fromkeys(seed.tags)),
    )


def is_sites_sitemap(found: Link | Request) -> bool:
    """Whether it is a sitemap that the site itself named: it may lie beside the folders in scope, its entries not."""
    return found.purpose is Purpose.SITEMAP and found.found in _NAMED_BY_SITE


def scope_of(seed: Seed, url: str) -> SeedScope:
    """What one seed allows."""
    return SeedScope(url=url, kind=seed.scope, allowed_domains=seed.allowed_domains)


def renewed(before: Iterable[SeedScope], seeds: Iterable[SeedScope]) -> tuple[SeedScope, ...]:
    """The scopes of a crawl whose seeds are these alone; where one of them had redirected to stays in scope."""
    now = dict.fromkeys(seeds)
    by_url = {scope.url: scope for scope in now}
    for scope in before:
        seed = by_url.get(scope.seed_url)
        if seed is not None:
            now[replace(scope, kind=seed.kind, allowed_domains=seed.allowed_domains)] = None
    return tuple(now)


class Gate:
    """What one crawl admits: its policy and the scopes of its seeds, learned as they come."""

    def __init__(self, policy: CrawlPolicy, settings: Settings, scopes: Iterable[SeedScope] = ()) -> None:
        self.policy = policy
        self._settings = settings
        self._rules = canonical_rules(settings)
        self._version = 0
        self._seeds: dict[str, SeedScope] = {}
        self._known = 0
        self._scopes: dict[tuple[ScopeKind, tuple[str, ...]], Scope] = {}
        self.learn(0, scopes)

    @property
    def known(self) -> tuple[int, int]:
        """The version of the scopes, and how many of them are known."""
        return self._version, self._known

    def learn(self, version: int, scopes: Iterable[SeedScope]) -> None:
        """Take in more scopes; those of another version replace all. Each costs the same, however many there are."""
        if version != self._version:
            self._version, self._known = version, 0
            self._seeds.clear()
            self._scopes.clear()
        for seed in scopes:
            self._known += 1
            self._seeds.setdefault(seed.url, seed)
            group = (seed.kind, seed.allowed_domains)  # of these there are few
            if group not in self._scopes:
                self._scopes[group] = Scope.compile(seed.kind, (), seed.allowed_domains)
            self._scopes[group].widen(seed.url)

    def scope_at(self, url: str) -> SeedScope | None:
        """The scope that begins at exactly this URL: that of a seed, or of what one redirected to."""
        return self._seeds.get(url)

    def allows_host(self, host: str) -> bool:
        """Whether any URL of the host can be in scope."""
        return any(scope.allows_host(host) for scope in self._scopes.values())

    def refuses(self, found: DiscoveredLinks) -> bool:
        """Whether links are refused by their host alone: it is out of scope, and none of them is a seed."""
        return not self.allows_host(found.target_host) and not any(link.found is Found.SEED for link in found.links)

    def allows(self, url: str) -> bool:
        """Whether a canonical URL is in scope."""
        return any(scope.allows(url) for scope in self._scopes.values())

    def allows_whole(self, host: str) -> bool:
        """Whether every URL of the host is in scope."""
        return any(scope.allows_whole(host) for scope in self._scopes.values())

    def is_path_scoped(self, request: Request) -> bool:
        """Whether a redirect to another path of the request's host could leave the scope."""
        return not is_sites_sitemap(request) and not self.allows_whole(host_of(request.url))

    def calls_off(self, request: Request) -> str | None:
        """Why a request that was admitted may not be fetched any more: out_of_scope, too_deep; or none."""
        return self._beyond(request.url, request)

    def judge(self, link: Link, found: DiscoveredLinks, now_ms: Millis) -> Candidate | str:
        """The request that a link becomes, or the reason of its refusal, without asking any store.

        Reasons: invalid_url, out_of_scope, too_deep, nofollow, sitemap_too_deep, redirect_loop, too_many_redirects, and
        the traps'.
        """
        try:
            url = canonical(link.url, self._rules)
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

    def _beyond(self, url: str, found: Link | Request) -> str | None:
        """Why the crawl does not go there."""
        if not (self.allows_host(host_of(url)) if is_sites_sitemap(found) else self.allows(url)):
            return "out_of_scope"
        return "too_deep" if found.depth > self.policy.depth_max else None

    def _refusal(self, link: Link, found: DiscoveredLinks, url: str) -> str | None:
        beyond = self._beyond(url, link)
        if beyond is not None:
            return beyond
        if not _NOT_FOLLOWED.isdisjoint(link.rel):
            return "nofollow"
        if link.nesting > self._settings.frontier.sitemap_depth_max + (link.purpose not in LIST_PURPOSES):
            return "sitemap_too_deep"
        if len(found.chain) > self._settings.fetch.redirects_max:
            return "too_many_redirects"
        if any(hop.url == url for hop in found.chain):
            return "redirect_loop"
        trap = static_trap(url, self._settings.frontier, self._settings.url.url_chars_max)
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
