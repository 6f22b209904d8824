"""robots.txt: parsing and verdicts, by RFC 9309 and Google's specification (pure, our own).

    robots = Robots.parse(body)
    verdict = robots.verdict("trawl", "https://example.com/private/x")    # allowed, and the line that decided

What is decided here, and where it comes from:

- Groups: every `User-agent` line before the first `Allow` or `Disallow` joins the group; other lines and blank lines
  never close one (RFC 9309, section 2.2.1). All groups that name an agent are merged; `*` holds only for agents that no
  group names. A group's name is compared as a whole word, without case: `foo` does not bind `foobar`.
- Rules: the longest matching pattern wins, `Allow` on a tie, an empty pattern is no rule (section 2.2.2).
- Google's leniency: a missing colon, common misspellings, `index.html` standing for its directory.
- Spelling: hexadecimal case never matters, reserved characters are never decoded (`%2F` is not `/`). RFC 9309 equates
  `%7Ejoe` with `~joe` and raw with encoded octets, Google's parser does not. Where they differ the stricter holds: a
  `Disallow` matches any equivalent spelling, an `Allow` only Google's.
- Matching takes time linear in the pattern and the URL, whatever the pattern: none becomes a regular expression.

Lines that are no rules stay where their author put them: they belong to the `User-agent` lines directly above.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Self, TypeVar

_T = TypeVar("_T")

BODY_BYTES_MAX: Final = 512_000
"""RFC 9309, section 2.5, asks a crawler to read at least 500 kibibytes."""
LINE_BYTES_MAX: Final = 16_664
"""Google's parser keeps one byte less than this of a line (2,083 characters of a URL, eight times)."""
EXTENSION_LINES_MAX: Final = 2_000
"""Lines kept that are no rules; the rest of them is ignored, so that a page served as robots.txt stays small."""
WILDCARD_RULES_MAX: Final = 2_000
"""Wildcard rules of an agent that are matched in full; beyond, a Disallow holds from its first wildcard on."""
ANY_AGENT: Final = "*"
ROBOTS_PATH: Final = "/robots.txt"

_SPACE: Final = " \t\v\f"
_AGENT_TYPES: Final = ("user-agent", "useragent", "user agent")
_DISALLOW_TYPES: Final = ("disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw")
_SITEMAP_TYPES: Final = ("sitemap", "site-map")
_GROUP_NAME: Final = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*")
_EXTENSION_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,63}")
_TARGET: Final = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*:(?=//))?(?://)?[^/?;#]*([^#]*)")
_ODD: Final = re.compile(r"%(?:[0-9A-Fa-f]{2})?|[^A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]")
_NUMBER: Final = re.compile(r"\d{1,9}(?:\.\d{1,9})?|\.\d{1,9}")
_REQUEST_RATE: Final = re.compile(
    r"(\d{1,6})\s*/\s*(\d{1,6})(?:\s*([smh])[a-z]*)?(?:\s+(\d{4})\s*-\s*(\d{4}))?", re.ASCII | re.IGNORECASE
)
_VISIT_TIME: Final = re.compile(r"(\d{4})\s*-\s*(\d{4})", re.ASCII)
_MINUTES_A_DAY: Final = 24 * 60
_UNIT_SECONDS: Final = {"": 1, "s": 1, "m": 60, "h": 3600}
_UNRESERVED: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a URL may be fetched, and why."""

    allowed: bool
    rule: str | None
    """The line that decided, such as `Disallow: /private/`; none if no rule matches."""
    line: int | None
    """Its number in the file, from 1."""
    group: str | None
    """The group that holds for the agent: its own name in lower case, `*`, or none."""


@dataclass(frozen=True, slots=True)
class DayWindow:
    """A part of the day in UTC, in minutes since midnight; it spans midnight if it ends before it starts."""

    start_minute: int
    end_minute: int

    def holds(self, minute: int) -> bool:
        """Whether a minute of the day is in it; its end is not. A window that ends where it starts is the whole day."""
        if self.start_minute < self.end_minute:
            return self.start_minute <= minute < self.end_minute
        return minute >= self.start_minute or minute < self.end_minute


@dataclass(frozen=True, slots=True)
class RequestRate:
    """`Request-rate: 1/5m 0600-0845`: so many requests in so many seconds, perhaps only in a part of the day."""

    requests: int
    seconds: int
    window: DayWindow | None = None

    @property
    def delay_seconds(self) -> float:
        """The time between two requests that keeps to it, evenly."""
        return self.seconds / self.requests

    def holds(self, minute: int) -> bool:
        """Whether it holds at a minute of the day in UTC."""
        return self.window is None or self.window.holds(minute)


@dataclass(frozen=True, slots=True)
class Pace:
    """What a robots.txt asks of the times of requests."""

    crawl_delay_seconds: float = 0.0
    rates: tuple[RequestRate, ...] = ()
    """The slowest first."""
    visit_times: tuple[DayWindow, ...] = ()
    """When visits are welcome; at any time if there are none."""

    def delay_seconds(self, at_ms: int) -> float:
        """The longest time between two requests that it asks for at a time in milliseconds since 1970; 0 for none."""
        minute = at_ms // 60_000 % _MINUTES_A_DAY
        rate = next((rate.delay_seconds for rate in self.rates if rate.holds(minute)), 0.0)
        return max(self.crawl_delay_seconds, rate)

    def opens_ms(self, at_ms: int) -> int:
        """When visits are welcome next, in milliseconds since 1970; that time itself if they are."""
        minute = at_ms // 60_000
        today = minute % _MINUTES_A_DAY
        if not self.visit_times or any(window.holds(today) for window in self.visit_times):
            return at_ms
        return 60_000 * (minute + min((window.start_minute - today) % _MINUTES_A_DAY for window in self.visit_times))


@dataclass(frozen=True, slots=True)
class ExtensionLine:
    """A line that is neither a rule nor a sitemap, such as `Content-Signal` or `Crawl-delay`, with its group."""

    name: str
    """In lower case."""
    value: str
    line: int
    agents: tuple[str, ...]
    """The names of the `User-agent` lines directly above, in lower case; empty before the first one."""


@dataclass(frozen=True, slots=True)
class _RuleLine:
    allow: bool
    value: str
    line: int


@dataclass(frozen=True, slots=True)
class _Group:
    agents: tuple[str, ...]
    rules: tuple[_RuleLine, ...]


@dataclass(frozen=True, slots=True)
class Robots:
    """A parsed robots.txt. Compares by content; rules are compiled for an agent at its first question."""

    groups: tuple[_Group, ...]
    sitemaps: tuple[str, ...]
    """The values of `Sitemap` lines in order, without repetition, as written."""
    extension_lines: tuple[ExtensionLine, ...]
    _compiled: "dict[str, _AgentRules]" = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def parse(cls, body: bytes, body_bytes_max: int = BODY_BYTES_MAX) -> Self:
        """Parse the body of a successful answer; never fails, what makes no sense is skipped.

        A line that the cap cuts in two is dropped, since half a path would forbid or allow something else.
        """
        reading = _Reading()
        for number, text in enumerate(_lines(body, body_bytes_max), 1):
            reading.read(number, text)
        return cls(reading.groups(), tuple(dict.fromkeys(reading.sitemaps)), tuple(reading.extensions))

    def verdict(self, agent: str, url: str) -> Verdict:
        """Whether `agent` (a product token such as `trawl`, or a User-Agent header) may fetch `url`.

        The URL is best in canonical form; a path alone is understood too. `/robots.txt` itself is always allowed
        (RFC 9309, section 2.2.2).
        """
        rules = self._rules_for(agent)
        path = _target(url)
        if path == ROBOTS_PATH:
            return Verdict(allowed=True, rule=None, line=None, group=rules.group)
        rule = rules.decide(path)
        if rule is None:
            return Verdict(allowed=True, rule=None, line=None, group=rules.group)
        return Verdict(rule.allow, f"{'Allow' if rule.allow else 'Disallow'}: {rule.text}", rule.line, rules.group)

    def group_of(self, agent: str) -> str | None:
        """The name of the group that holds for `agent`: its own in lower case, `*`, or none."""
        return self._rules_for(agent).group

    def extensions(self, agent: str) -> tuple[ExtensionLine, ...]:
        """The lines other than rules and sitemaps that were written for `agent`'s group."""
        group = self.group_of(agent)
        return tuple(line for line in self.extension_lines if group in line.agents)

    def crawl_delay(self, agent: str) -> float | None:
        """The longest `Crawl-delay` of the agent's group in seconds, unclamped; none if there is none."""
        return max(self._values(agent, "crawl-delay", _seconds), default=None)

    def request_rates(self, agent: str) -> tuple[RequestRate, ...]:
        """The `Request-rate` lines of the agent's group, the slowest first."""
        return tuple(sorted(self._values(agent, "request-rate", _rate), key=lambda rate: -rate.delay_seconds))

    def pace(self, agent: str) -> "Pace":
        """What the agent's group asks of the times of requests."""
        return Pace(self.crawl_delay(agent) or 0.0, self.request_rates(agent), self.visit_times(agent))

    def visit_times(self, agent: str) -> tuple[DayWindow, ...]:
        """The `Visit-time` lines of the agent's group: at any of them visits are welcome, and at no other time."""
        return tuple(self._values(agent, "visit-time", _visit_time))

    def _values(self, agent: str, name: str, read: Callable[[str], _T | None]) -> list[_T]:
        values = (read(line.value) for line in self.extensions(agent) if line.name == name)
        return [value for value in values if value is not None]

    def _rules_for(self, agent: str) -> "_AgentRules":
        rules = self._compiled.get(agent)
        if rules is None:
            rules = self._compiled[agent] = _compile(self, product_token(agent))
        return rules


def allowed(robots_body: bytes, agent: str, url: str) -> bool:
    """Whether a robots.txt with this body lets `agent` (a product token) fetch `url`."""
    return _parsed(robots_body).verdict(agent, url).allowed


def spelled_path(url: str) -> str:
    """The path and query of a URL in the spelling that path patterns are matched against."""
    return _spell(_target(url), decode=True, encode_high=True)


class PathPattern:
    """A path pattern with the `*` and `$` of a rule, which other protocols have taken over, such as AIPREF and TDMRep.

    It matches every spelling of a path that RFC 9309, section 2.2.2, calls the same.
    """

    __slots__ = ("_pattern",)

    def __init__(self, text: str) -> None:
        spelled = _spell(text, decode=True, encode_high=True)
        self._pattern = _pattern(_RuleLine(allow=False, value=text, line=0), spelled)

    @property
    def chars(self) -> int:
        """How specific it is."""
        return self._pattern.chars

    def matches(self, path: str) -> bool:
        """Whether it matches a path, spelled by `spelled_path`."""
        return self._pattern.matches(path)


@lru_cache(maxsize=32)
def _parsed(body: bytes) -> Robots:
    return Robots.parse(body)


# Reading


class _Reading:
    """The state of one pass over the lines."""

    def __init__(self) -> None:
        self.sitemaps: list[str] = []
        self.extensions: list[ExtensionLine] = []
        self._groups: list[tuple[list[str], list[_RuleLine]]] = []
        self._named: list[str] = []
        self._naming = False
        self._types: dict[str, str] = {}

    def groups(self) -> tuple[_Group, ...]:
        return tuple(_Group(tuple(dict.fromkeys(agents)), tuple(rules)) for agents, rules in self._groups)

    def read(self, number: int, text: str) -> None:
        key, value = _directive(text)
        if not key:
            return
        kind = self._types.get(key)
        if kind is None:
            kind = _line_type(key)
            if len(self._types) < EXTENSION_LINES_MAX:
                self._types[key] = kind
        if kind in {"allow", "disallow"}:
            self._rule(number, value, allow=kind == "allow")
        elif kind == "agent":
            self._agent(value)
        elif kind == "sitemap":
            if value:
                self.sitemaps.append(value)
        else:
            self._extension(number, key, value)

    def _agent(self, value: str) -> None:
        if not self._naming:
            self._named = []
            self._naming = True
        if not self._groups or self._groups[-1][1]:
            self._groups.append(([], []))
        name = _group_name(value)
        if name:
            self._named.append(name)
            self._groups[-1][0].append(name)

    def _rule(self, number: int, value: str, *, allow: bool) -> None:
        if not self._groups:
            return  # a rule before any User-agent line belongs to nobody
        self._naming = False
        # An empty rule allows and forbids nothing, but it is a rule: the next User-agent line starts a new group.
        self._groups[-1][1].append(_RuleLine(allow, value, number))

    def _extension(self, number: int, key: str, value: str) -> None:
        if len(self.extensions) < EXTENSION_LINES_MAX and _EXTENSION_NAME.fullmatch(key):
            self._naming = False
            self.extensions.append(ExtensionLine(key.lower(), value, number, tuple(self._named)))


def _lines(body: bytes, body_bytes_max: int) -> list[str]:
    if len(body) > body_bytes_max:
        cut = body[:body_bytes_max]
        body = cut[: max(cut.rfind(b"\n"), cut.rfind(b"\r")) + 1]
    for mark in (b"\xef\xbb\xbf", b"\xef\xbb", b"\xef"):  # like Google's parser, also a byte order mark cut short
        if body.startswith(mark):
            body = body[len(mark) :]
            break
    if b"\r" in body:
        body = body.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if len(body) >= LINE_BYTES_MAX:
        lines = body.split(b"\n")
        if max(map(len, lines)) >= LINE_BYTES_MAX:
            body = b"\n".join(line[: LINE_BYTES_MAX - 1] for line in lines)
    # Octets that are no UTF-8 survive as lone surrogates, so that the pattern still encodes to the same octets.
    return body.decode("utf-8", "surrogateescape").split("\n")


def _directive(text: str) -> tuple[str, str]:
    """Split `name: value # comment`; a line of two words may lack the colon. Empty name: nothing to read."""
    text = text.partition("#")[0]
    key, colon, value = text.partition(":")
    if not colon:
        words = text.split()
        return (words[0], words[1]) if len(words) == 2 else ("", "")
    return key.strip(_SPACE), value.strip(_SPACE)


def _line_type(key: str) -> str:
    lowered = key.lower()
    if lowered.startswith(_AGENT_TYPES):
        return "agent"
    if lowered.startswith("allow"):
        return "allow"
    if lowered.startswith(_DISALLOW_TYPES):
        return "disallow"
    return "sitemap" if lowered.startswith(_SITEMAP_TYPES) else "extension"


def _group_name(value: str) -> str:
    """`*`, or the first product token of a `User-agent` line, in lower case; a version or more words are ignored."""
    if value[:1] == ANY_AGENT and (len(value) == 1 or value[1].isspace()):
        return ANY_AGENT
    match = _GROUP_NAME.match(value)
    return match[0].lower() if match else ""


def product_token(agent: str) -> str:
    """The name of a crawler that sites look for, in lower case, of a User-Agent header or as it is.

    Only a version is cut off: `Foo Bar` is no product token and matches no group.
    """
    name = agent.partition("/")[0]
    return (name if _GROUP_NAME.fullmatch(name) else agent).lower()


# Matching


@dataclass(frozen=True, slots=True)
class _Pattern:
    """One rule, ready to match: literal pieces that follow each other with anything between them."""

    allow: bool
    text: str
    line: int
    chars: int
    """The length of the pattern, which is its priority."""
    pieces: tuple[str, ...]
    anchored: bool
    chars_min: int

    @property
    def prefix(self) -> str | None:
        """The text that every path that matches starts with, and no other; none for a true wildcard or anchor.

        One `*` at the end adds a character of priority and no more, so that of two prefixes that match the longer one
        is never of lower priority.
        """
        if self.anchored or self.pieces[1:] not in {(), ("",)} or self.chars > len(self.pieces[0]) + 1:
            return None
        return self.pieces[0]

    def matches(self, path: str) -> bool:
        """Greedy from the left, which is right for `*`; each character of the path is passed once."""
        if len(path) < self.chars_min or not path.startswith(self.pieces[0]):
            return False
        if len(self.pieces) == 1:
            return not self.anchored or len(path) == len(self.pieces[0])
        at = len(self.pieces[0])
        for piece in self.pieces[1:-1]:
            at = path.find(piece, at)
            if at < 0:
                return False
            at += len(piece)
        last = self.pieces[-1]
        if self.anchored:
            return path.endswith(last) and len(path) - len(last) >= at
        return path.find(last, at) >= 0


class _PatternSet:
    """Patterns of which the longest that matches is wanted: plain prefixes by dictionary, the others in turn.

    Only so many are tried in turn, the longest ones, since an owner of both a robots.txt and its links could else make
    each verdict take 100 ms. The rest become prefixes that match more than was asked, or with `drop_rest` nothing.
    """

    def __init__(self, patterns: Iterable[tuple[str, _Pattern]], *, drop_rest: bool) -> None:
        self._prefixes: dict[str, _Pattern] = {}
        wild: dict[str, _Pattern] = {}
        for text, pattern in patterns:
            prefix = pattern.prefix
            if prefix is None:
                wild.setdefault(text, pattern)
            elif prefix not in self._prefixes or pattern.chars > self._prefixes[prefix].chars:
                self._prefixes[prefix] = pattern
        self._lengths = _lengths(self._prefixes)
        ordered = sorted(wild.values(), key=lambda pattern: -pattern.chars)
        self._wild = tuple(ordered[:WILDCARD_RULES_MAX])
        self._rest: dict[str, _Pattern] = {}
        for pattern in () if drop_rest else ordered[WILDCARD_RULES_MAX:]:
            self._rest.setdefault(pattern.pieces[0], pattern)
        self._rest_lengths = _lengths(self._rest)

    def longest(self, path: str) -> _Pattern | None:
        best = None
        for chars in self._lengths:
            best = self._prefixes.get(path[:chars])
            if best is not None:
                break
        for pattern in self._wild:
            if best is not None and pattern.chars <= best.chars:
                break
            if pattern.matches(path):
                return pattern  # the rest are no longer than this
        for chars in self._rest_lengths:
            rest = self._rest.get(path[:chars])
            if rest is not None and (best is None or rest.chars > best.chars):
                best = rest
        return best


def _lengths(prefixes: Iterable[str]) -> tuple[int, ...]:
    return tuple(sorted({len(prefix) for prefix in prefixes}, reverse=True))


@dataclass(frozen=True, slots=True)
class _AgentRules:
    """The rules that hold for one agent."""

    group: str | None
    allow: _PatternSet
    disallow: _PatternSet

    def decide(self, path: str) -> _Pattern | None:
        exact = _spell(path, decode=False, encode_high=False)
        allow = self.allow.longest(exact)
        disallow = self.disallow.longest(exact)
        if exact is not path:
            # A Disallow also holds for a spelling of the path that RFC 9309 calls the same.
            other = self.disallow.longest(_spell(path, decode=True, encode_high=True))
            if other is not None and (disallow is None or other.chars > disallow.chars):
                disallow = other
        if allow is not None and (disallow is None or allow.chars >= disallow.chars):
            return allow
        return disallow


def _compile(robots: Robots, token: str) -> _AgentRules:
    groups = [group for group in robots.groups if token in group.agents] if token != ANY_AGENT else []
    name = token if groups else ANY_AGENT
    groups = groups or [group for group in robots.groups if ANY_AGENT in group.agents]
    rules = [rule for group in groups for rule in group.rules if rule.value]
    allow = (pair for rule in rules if rule.allow for pair in _allow_patterns(rule))
    disallow = (pair for rule in rules if not rule.allow for pair in _disallow_patterns(rule))
    return _AgentRules(
        name if groups else None, _PatternSet(allow, drop_rest=True), _PatternSet(disallow, drop_rest=False)
    )


def _allow_patterns(rule: _RuleLine) -> Iterator[tuple[str, _Pattern]]:
    text = _spell(rule.value, decode=False, encode_high=True)
    yield text, _pattern(rule, text)
    directory, slash, name = text.rpartition("/")
    if slash and name.startswith("index.htm"):  # as in Google's parser: the page of a directory stands for it
        text = f"{directory}/$"
        yield text, _pattern(rule, text)


def _disallow_patterns(rule: _RuleLine) -> Iterator[tuple[str, _Pattern]]:
    text = _spell(rule.value, decode=False, encode_high=True)
    yield text, _pattern(rule, text)
    other = _spell(rule.value, decode=True, encode_high=True)
    if other != text:
        yield other, _pattern(rule, other)


def _pattern(rule: _RuleLine, text: str) -> _Pattern:
    anchored = text.endswith("$")
    pieces = (text[:-1] if anchored else text).split("*")
    kept = (pieces[0], *(piece for piece in pieces[1:-1] if piece), *pieces[1:][-1:])
    shown = rule.value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return _Pattern(rule.allow, shown, rule.line, len(text), kept, anchored, sum(map(len, kept)))


def _target(url: str) -> str:
    """Path, parameters and query of a URL, as in Google's parser: never empty, without the fragment."""
    match = _TARGET.match(url)
    path = match[1] if match else ""
    return path if path.startswith("/") else f"/{path}"


def _spell(text: str, *, decode: bool, encode_high: bool) -> str:
    """Bring percent-encoding into one spelling; the very same object if there is nothing to do.

    Always: hexadecimal digits in upper case; ASCII that no URL may hold, and a percent sign that starts no octet,
    encoded as in the canonical form. `decode`: unreserved octets decoded. `encode_high`: octets beyond ASCII encoded.
    """
    if _ODD.search(text) is None:
        return text

    def respell(match: re.Match[str]) -> str:
        found = match[0]
        if len(found) == 3:
            octet = int(found[1:], 16)
            return chr(octet) if decode and octet in _UNRESERVED else found.upper()
        if found.isascii() or encode_high:
            octets = found.encode("utf-8", "surrogateescape" if "\udc80" <= found <= "\udcff" else "replace")
            return "".join(f"%{octet:02X}" for octet in octets)
        return found

    return _ODD.sub(respell, text)


# Values of other lines


def _seconds(value: str) -> float | None:
    match = _NUMBER.match(value)
    return float(match[0]) if match else None


def _rate(value: str) -> RequestRate | None:
    match = _REQUEST_RATE.match(value)
    if match is None or not int(match[1]) or not int(match[2]):
        return None
    window = _window(match[4], match[5]) if match[4] else None
    return RequestRate(int(match[1]), int(match[2]) * _UNIT_SECONDS[(match[3] or "").lower()], window)


def _visit_time(value: str) -> DayWindow | None:
    match = _VISIT_TIME.match(value)
    return _window(match[1], match[2]) if match else None


def _window(start: str, end: str) -> DayWindow | None:
    minutes = [int(text[:2]) * 60 + int(text[2:]) for text in (start, end)]
    if any(int(text[2:]) > 59 for text in (start, end)) or max(minutes) > 24 * 60:
        return None
    return DayWindow(*minutes)
