"""URLs: WHATWG parsing, the canonical form, keys, scope, templates and file names (pure).

Parsing is ada-url's, which follows the WHATWG URL Standard. `canonical` builds on it, and every other function here
takes a canonical URL unless it says otherwise:

- credentials, fragment, default port, the host's trailing dot and an empty query are dropped;
- percent-encoding is normalised as in RFC 3986, section 6.2.2: unreserved octets decoded, hexadecimal digits in upper
  case; a reserved character stays encoded or raw, as it was; a percent sign that starts no octet becomes `%25`;
- tracking and session parameters are dropped, in the query and as `;jsessionid=` in the path, and so are empty ones;
- the query may be sorted by parameter name (off by default: for some servers the order matters).

Host key: `example.com`, or `example.com:8080` if the port is not the scheme's own; IPv6 addresses keep their brackets.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Self

import ada_url
import xxhash
from publicsuffixlist import PublicSuffixList

from trawl.errors import InvalidUrlError
from trawl.kinds import ScopeKind

URL_CHARS_MAX: Final = 2048
NAME_CHARS_MAX: Final = 150
REPEAT_BLOCK_MAX: Final = 8
"""Runs of at most this many path segments are looked at for repetition."""
NAMED_PARAMETERS_MAX: Final = 4
"""A template names at most this many parameters; the subsets of more facets would each be a template of their own."""

# fmt: off
TRACKING_PARAMETERS: Final = frozenset({
    "_branch_match_id", "_ga", "_gac", "_gl", "_hsenc", "_hsmi", "_kx", "_openstat", "dclid", "epik",
    "fb_action_ids", "fb_action_types", "fb_ref", "fb_source", "fbclid", "gad_campaignid", "gad_source",
    "gbraid", "gclid", "gclsrc", "guccounter", "guce_referrer", "guce_referrer_sig", "hsctatracking", "igsh",
    "igshid", "li_fat_id", "mc_cid", "mc_eid", "mkt_tok", "ml_subscriber", "ml_subscriber_hash", "msclkid",
    "oly_anon_id", "oly_enc_id", "rb_clickid", "s_cid", "srsltid", "ttclid", "twclid", "vero_conv", "vero_id",
    "wbraid", "wickedid", "yclid", "ysclid", "__hsfp", "__hssc", "__hstc",
})
# fmt: on
"""Parameters that say how a visitor came, never what the page shows."""
TRACKING_PREFIXES: Final = ("utm_", "hsa_", "matomo_", "mtm_", "piwik_", "pk_")
SESSION_PARAMETERS: Final = frozenset({"jsessionid", "oscsid", "phpsessid", "xtcsid", "zenid"})
"""Parameters that are always a session."""
SESSION_PREFIXES: Final = ("aspsessionid",)
MAYBE_SESSION_PARAMETERS: Final = frozenset({"s_id", "sessid", "session", "session_id", "sessionid", "sid", "ssid"})
"""Parameters that are a session if their value looks like one: `sid=3` may well be a page."""

_PATH_SESSION: Final = re.compile(r";(?:jsessionid|phpsessid|sessionid|sid)=[^/;]*", re.IGNORECASE)
_SESSION_VALUE: Final = re.compile(r"(?=[^=]*\d)(?=[^=]*[A-Za-z])[A-Za-z0-9_.,~-]{16,}|\d{20,}")
_PERCENT: Final = re.compile(r"%(?:[0-9A-Fa-f]{2})?")
_UNSAFE_NAME_CHARACTER: Final = re.compile(r"[^A-Za-z0-9.-]")
_SIGN_BIT: Final = 1 << 63
_WORD: Final = 1 << 64


def _percent_table() -> dict[str, str]:
    unreserved = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
    digits = "0123456789ABCDEFabcdef"
    pairs = (f"%{high}{low}" for high in digits for low in digits)
    decoded = ((pair, chr(int(pair[1:], 16))) for pair in pairs)
    return {"%": "%25", **{pair: text if text in unreserved else pair.upper() for pair, text in decoded}}


_PERCENT_SPELLING: Final = _percent_table()


@dataclass(frozen=True, slots=True)
class ParsedUrl:
    """A URL's parts, as the URL class of the WHATWG standard names and serialises them."""

    href: str
    origin: str
    protocol: str
    username: str
    password: str
    host: str
    hostname: str
    port: str
    pathname: str
    search: str
    hash: str


@dataclass(frozen=True, slots=True)
class CanonicalRules:
    """What `canonical` may differ in from crawl to crawl."""

    url_chars_max: int = URL_CHARS_MAX
    """A longer canonical URL is refused."""
    sort_query: bool = False
    """Whether parameters are sorted by name; those of one name keep their order."""
    drop_parameters: frozenset[str] = frozenset()
    """Parameters dropped besides the built-in ones, in lower case; `name*` drops all that start so."""
    _names: frozenset[str] = field(init=False, repr=False, compare=False)
    _prefixes: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        wanted = {name.lower() for name in self.drop_parameters if name}
        names = {name for name in wanted if not name.endswith("*")}
        prefixes = sorted(name[:-1] for name in wanted if name.endswith("*"))
        object.__setattr__(self, "_names", TRACKING_PARAMETERS | SESSION_PARAMETERS | names)
        object.__setattr__(self, "_prefixes", (*TRACKING_PREFIXES, *SESSION_PREFIXES, *prefixes))

    def drops(self, parameter: str) -> bool:
        """Whether `name=value`, percent-encoding normalised, is dropped from a query."""
        name, _, value = parameter.partition("=")
        name = name.lower()
        if name in self._names or name.startswith(self._prefixes):
            return True
        return name in MAYBE_SESSION_PARAMETERS and _SESSION_VALUE.fullmatch(value) is not None


DEFAULT_RULES: Final = CanonicalRules()


# Parsing


def parse(text: str, base: str | None = None) -> ParsedUrl:
    """Parse any URL by the WHATWG standard, relative to `base` if given; raises InvalidUrlError if it is none."""
    parts = ada_url.parse_url(_normalised(text) if base is None else join(base, text))
    return ParsedUrl(**{name: parts[name] for name in ParsedUrl.__slots__})  # type: ignore[literal-required]


def join(base: str, href: str) -> str:
    """The absolute URL that `href` means in a document at `base`, by the WHATWG standard, any scheme.

    It is serialised, not canonical. Raises InvalidUrlError.
    """
    try:
        return ada_url.join_url(base, href)
    except ValueError:
        clean_base, clean_href = _scalar(base), _scalar(href)
        if (clean_base, clean_href) != (base, href):
            return join(clean_base, clean_href)
        raise InvalidUrlError(f"{_shown(href)} is no URL relative to {_shown(base)}") from None


def _normalised(text: str) -> str:
    try:
        return ada_url.normalize_url(text)
    except ValueError:
        clean = _scalar(text)
        if clean != text:
            return _normalised(clean)
        raise InvalidUrlError(f"{_shown(text)} is not an absolute URL; write it as https://host/path") from None


def _scalar(text: str) -> str:
    """The text with lone surrogates replaced, as the standard's USVString conversion does."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _shown(text: str) -> str:
    return repr(text if len(text) <= 200 else f"{text[:200]}…")


# Canonical form


def canonical(url: str, rules: CanonicalRules = DEFAULT_RULES) -> str:
    """The canonical form of an absolute http or https URL; idempotent.

    Raises InvalidUrlError with the reason: not a URL, another scheme, a host with an empty label, too long.
    """
    if len(url) > 4 * rules.url_chars_max:  # what is dropped may make it fit, so the first cap is looser
        raise InvalidUrlError(f"the URL {_shown(url)} has {len(url)} characters, over {rules.url_chars_max}")
    href = _normalised(url)
    if not href.startswith(("https://", "http://")):
        raise InvalidUrlError(f"{_shown(url)} has the scheme {href.partition(':')[0]}; only http and https are fetched")
    location, _, query = href.partition("#")[0].partition("?")
    slash = location.index("/", 8)
    head, path = location[:slash], location[slash:]
    if "@" in head or head[-1] == "." or ".." in head or ".:" in head or "/." in head:
        head = _clean_head(head, url)
    if "%" in path or ";" in path:
        path = _clean_path(head, path)
    if query:
        query = _clean_query(query, rules)
    result = f"{head}{path}?{query}" if query else head + path
    if len(result) > rules.url_chars_max:
        raise InvalidUrlError(f"the URL {_shown(url)} has {len(result)} characters, over {rules.url_chars_max}")
    return result


def _clean_head(head: str, url: str) -> str:
    scheme, _, authority = head.partition("://")
    authority = authority.rpartition("@")[2]
    host, colon, port = authority.partition(":") if authority[:1] != "[" else (authority, "", "")
    host = host.removesuffix(".")
    if not all(host.split(".")):
        raise InvalidUrlError(f"the host of {_shown(url)} has an empty label, which no name server can resolve")
    return f"{scheme}://{host}{colon}{port}"


def _clean_path(head: str, path: str) -> str:
    cleaned = _PERCENT.sub(_percent_spelling, path) if "%" in path else path
    if ";" in cleaned:
        without = _PATH_SESSION.sub("", cleaned)
        if without != cleaned and "/." in without:  # `/a/..;jsessionid=1` has become a dot segment
            without = ada_url.normalize_url(head + without)[len(head) :]
        cleaned = without
    return cleaned


def _clean_query(query: str, rules: CanonicalRules) -> str:
    if "%" in query:
        query = _PERCENT.sub(_percent_spelling, query)
    kept = [parameter for parameter in query.split("&") if parameter and not rules.drops(parameter)]
    if rules.sort_query:
        kept.sort(key=lambda parameter: parameter.partition("=")[0])
    return "&".join(kept)


def _percent_spelling(match: re.Match[str]) -> str:
    return _PERCENT_SPELLING[match[0]]


# Parts


def host_of(url: str) -> str:
    """The host key of a serialised URL: host name, and port if it is not the scheme's own. Empty without authority."""
    return url.partition("://")[2].partition("/")[0].rpartition("@")[2]


def hostname_of(url: str) -> str:
    """The host name of a serialised URL, without port; IPv6 addresses in brackets."""
    return _without_port(host_of(url))


def origin_of(url: str) -> str:
    """`scheme://host[:port]` of a canonical URL: what one robots.txt holds for."""
    return url[: url.index("/", 8)]


def registrable_domain(host: str) -> str:
    """The part of a host name that is registered by somebody, such as `example.co.uk`, by the Public Suffix List.

    Private suffixes count (`user.github.io`). An address, a single label or a public suffix is returned as it is.
    """
    return _registrable_domain(_without_port(host))


@lru_cache(maxsize=16_384)
def _registrable_domain(hostname: str) -> str:
    if hostname[:1] == "[" or hostname.replace(".", "").isdigit():
        return hostname
    return _suffix_list().privatesuffix(hostname) or hostname


def is_public_suffix(host: str) -> bool:
    """Whether names below this one belong to different owners, as below `co.uk` and `github.io`."""
    return _suffix_list().publicsuffix(host) == host


@lru_cache(maxsize=1)
def _suffix_list() -> PublicSuffixList:
    return PublicSuffixList()  # the copy inside the package; reading it takes about 40 ms


def _without_port(host: str) -> str:
    if host[-1:] == "]":
        return host
    name, colon, _ = host.rpartition(":")
    return name if colon else host


# Keys


def request_key(crawl_id: str, url: str) -> int:
    """The key of a requested URL in a crawl: a signed 64-bit integer. `url` is the canonical form as requested."""
    return _key("request", crawl_id, url)


def document_key(crawl_id: str, final_url: str) -> int:
    """The key of the document at a canonical final URL in a crawl: a signed 64-bit integer."""
    return _key("document", crawl_id, final_url)


def fetch_id(request_key: int, purpose: str, render_mode: str, scheduled_at_ms: int) -> int:
    """The id of one fetch of a request, a signed 64-bit integer; the same schedule gives the same id."""
    return _key("fetch", key_hex(request_key), purpose, render_mode, str(scheduled_at_ms))


def host_shard(host: str, shards: int) -> int:
    """The shard, from 0 to below `shards`, that owns a host key; equal on every machine and in every version."""
    return xxhash.xxh3_64_intdigest(f"host\0{host}".encode()) % shards


def template_key(template: str) -> int:
    """The key of a URL template, host included: a signed 64-bit integer."""
    return _key("template", template)


def key_hex(key: int) -> str:
    """A key as 16 hexadecimal digits, in lower case."""
    return f"{key % _WORD:016x}"


def key_of_hex(text: str) -> int:
    """The key that `key_hex` wrote; raises ValueError if the text is not 16 hexadecimal digits."""
    if not re.fullmatch(r"[0-9a-fA-F]{16}", text):
        raise ValueError(f"{text!r} is not a key: it takes 16 hexadecimal digits")
    return _signed(int(text, 16))


def _key(*parts: str) -> int:
    # NUL ends each part but the last, and a canonical URL holds none, so no two different inputs look alike; the first
    # part keeps the kinds of keys apart.
    return _signed(xxhash.xxh3_64_intdigest("\0".join(parts).encode("utf-8", "surrogatepass")))


def _signed(word: int) -> int:
    return word - _WORD if word & _SIGN_BIT else word


# Scope


@dataclass(slots=True)
class Scope:
    """Which URLs a crawl may visit: asked for every host and link, and widened seed by seed at a constant cost."""

    kind: ScopeKind
    allowed_domains: frozenset[str] = frozenset()
    """Domains in scope besides, each with all its subdomains."""
    hosts: set[str] = field(default_factory=set)
    """Host keys that are in scope whole or, in the prefix scope, in part."""
    prefixes: dict[str, set[str]] = field(default_factory=dict)
    """For the prefix scope the path prefixes of the seeds, by host key."""
    domains: set[str] = field(default_factory=set)
    """Registrable domains of the seeds, for the domain scope."""

    @classmethod
    def compile(cls, kind: ScopeKind, seed_urls: Iterable[str], allowed_domains: Iterable[str] = ()) -> Self:
        """Compile the scope of a crawl from its canonical seed URLs and `allowed_domains`.

        An allowed domain is `example.org`, `*.example.org` or a URL; with a port it is that host alone. Raises
        InvalidUrlError if one cannot be a host.
        """
        scope = cls(ScopeKind(kind), frozenset(map(_allowed_domain, allowed_domains)))
        for url in seed_urls:
            scope.widen(url)
        return scope

    def widen(self, url: str) -> None:
        """Take in one more seed, or what a seed redirects to (example.com to www.example.com)."""
        host = host_of(url)
        self.hosts.add(host)
        if self.kind is ScopeKind.PREFIX:
            self.prefixes.setdefault(host, set()).add(_directory(url))
        elif self.kind is ScopeKind.DOMAIN:
            self.domains.add(registrable_domain(host))

    def allows_host(self, host: str) -> bool:
        """Whether any URL of a host key can be in scope: the cheap test for links that come grouped by host."""
        if self.kind is ScopeKind.ANY or host in self.hosts:
            return True
        if self.kind is ScopeKind.DOMAIN and registrable_domain(host) in self.domains:
            return True
        return bool(self.allowed_domains) and self._allowed_besides(host)

    def allows_whole(self, host: str) -> bool:
        """Whether every URL of a host key is in scope."""
        if self.kind is not ScopeKind.PREFIX:
            return self.allows_host(host)
        return "/" in self.prefixes.get(host, ()) or (bool(self.allowed_domains) and self._allowed_besides(host))

    def allows(self, url: str) -> bool:
        """Whether a canonical URL is in scope."""
        host = host_of(url)
        if self.kind is not ScopeKind.PREFIX:
            return self.allows_host(host)
        prefixes = self.prefixes.get(host)
        below = prefixes is not None and _is_below(_path_of(url), prefixes)
        return below or (bool(self.allowed_domains) and self._allowed_besides(host))

    def _allowed_besides(self, host: str) -> bool:
        if host in self.allowed_domains:
            return True
        name = _without_port(host)
        while name and name not in self.allowed_domains:
            name = name.partition(".")[2]
        return bool(name)


def in_scope(url: str, kind: ScopeKind, seed_url: str, allowed_domains: Iterable[str] = ()) -> bool:
    """Whether a canonical URL is in the scope of one seed; compile a `Scope` to ask more than once."""
    return Scope.compile(kind, (seed_url,), allowed_domains).allows(url)


def _path_of(url: str) -> str:
    return url[url.index("/", 8) :].partition("?")[0]


def _is_below(path: str, prefixes: set[str]) -> bool:
    """Whether a path is in one of the folders, or is one; each of its own folders is looked up, however many there are.

    A prefix without a slash at its end, such as `/docs`, stands for the page and for the folder of that name.
    """
    at = path.find("/")
    while at >= 0:
        if path[: at + 1] in prefixes or path[:at] in prefixes:
            return True
        at = path.find("/", at + 1)
    return path in prefixes


def _directory(url: str) -> str:
    """The folder of a seed. `/docs` alone is taken for one, since the folder above it is the whole host."""
    path = _path_of(url)
    folder, _, name = path.rpartition("/")
    return path if not folder and name and "." not in name else f"{folder}/"


def _allowed_domain(text: str) -> str:
    name = text.strip()
    return host_of(canonical(name if "://" in name else f"http://{name.removeprefix('*').removeprefix('.')}/"))


# Templates

_SHAPE: Final = re.compile(
    r"""
      (?P<uuid> (?<![0-9A-Za-z]) [0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12} (?![0-9A-Za-z]) )
    | (?P<date> (?<!\d) (?:19|20)\d\d [-_.] (?:0[1-9]|1[0-2]) (?: [-_.] (?:0[1-9]|[12]\d|3[01]) )? (?!\d) )
    | (?P<n>    (?<![0-9A-Za-z]) \d+ (?![0-9A-Za-z]) )
    | (?P<hex>  (?<![0-9A-Za-z]) (?=[a-f]*\d) [0-9a-f]{8,} (?![0-9A-Za-z]) )
    | (?P<token>(?<![0-9A-Za-z]) (?=[a-z]*\d) [0-9a-z]{20,} (?![0-9A-Za-z]) )
    | (?P<some> \d+ )
    """,
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)


def template(url: str) -> str:
    """The pattern that a canonical URL is one of: `example.com/shop/{n}?{color,size}`.

    Numbers, dates, hexadecimal runs, UUIDs and session-like tokens become placeholders, words and slugs stay, repeated
    runs of segments become `{repeat}`, a query becomes the set of its parameter names (`{*}` for more than four).
    The scheme is left out. `is_pattern` tells whether the template can stand for more than one URL.
    """
    location, _, query = url.partition("://")[2].partition("?")
    host, *segments = location.split("/")
    path = "/".join((host, *_without_repeats([_shape(segment) for segment in segments])))
    if not query:
        return path
    names = sorted({_shape(parameter.partition("=")[0]) for parameter in query.split("&")})
    return f"{path}?{{{','.join(names) if len(names) <= NAMED_PARAMETERS_MAX else '*'}}}"


def is_pattern(template: str) -> bool:
    """Whether a template stands for more than one URL."""
    return "{" in template


def repeats(segments: Sequence[str]) -> int:
    """How often in a row the most repeated run of at most eight segments appears; 1 if none does twice."""
    most = min(1, len(segments))
    for size in range(1, min(REPEAT_BLOCK_MAX, len(segments) // 2) + 1):
        equal = 0
        for left, right in zip(segments, segments[size:], strict=False):
            equal = equal + 1 if left == right else 0
            most = max(most, equal // size + 1)
    return most


@lru_cache(maxsize=16_384)
def _shape(segment: str) -> str:
    return segment if segment.isalpha() else _SHAPE.sub(_placeholder, segment)


def _placeholder(match: re.Match[str]) -> str:
    kind = match.lastgroup
    return "{n}" if kind == "some" else f"{{{kind}}}"


def _without_repeats(shapes: list[str]) -> list[str]:
    kept: list[str] = []
    at = 0
    while at < len(shapes):
        size = _repeated_size(shapes, at)
        if not size:
            kept.append(shapes[at])
            at += 1
            continue
        block = shapes[at : at + size]
        kept += [*block, "{repeat}"]
        while shapes[at : at + size] == block:
            at += size
    return kept


def _repeated_size(shapes: list[str], at: int) -> int:
    for size in range(1, REPEAT_BLOCK_MAX + 1):
        block = shapes[at : at + size]
        # Numbers repeat for good reasons: /2031/04 is {n}/{n}.
        if block == shapes[at + size : at + 2 * size] and len(block) == size and not all("{" in part for part in block):
            return size
    return 0


# File names


def file_name(url: str, *, disambiguate: bool = False, name_chars_max: int = NAME_CHARS_MAX) -> str:
    """The name, without extension, of the file that holds a page: `https_example.com_docs_`.

    `://` and every other character outside `[A-Za-z0-9.-]` become `_`. A name over `name_chars_max` is cut and ends in
    a hash of the URL. Two URLs may share a name, also by case alone: the caller then asks to `disambiguate`, which
    always appends the hash.
    """
    name = _UNSAFE_NAME_CHARACTER.sub("_", url.replace("://", "_", 1))
    if len(name) <= name_chars_max and not disambiguate:
        return name
    ending = f"_{_file_hash(url):08x}"
    return name[: max(0, name_chars_max - len(ending))] + ending


def _file_hash(url: str) -> int:
    return xxhash.xxh3_64_intdigest(f"file\0{url}".encode()) >> 32
