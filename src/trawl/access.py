"""How each host is reached, and as whom: credentials, proxies, countries, TLS profiles (pure).

The rules are those of an access file (see docs/access.md). All rules that match a URL hold, in their order; of two that
say the same thing the later one counts. Credentials are for origins: without a scheme in its pattern a rule gives them
to https alone.
"""

import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final, Self, TypeAlias
from urllib.parse import quote, urlsplit, urlunsplit

from trawl.errors import InvalidUrlError, SettingsError
from trawl.url import canonical, hostname_of, is_public_suffix, origin_of

Fields: TypeAlias = tuple[tuple[str, str], ...]
"""Header fields: name and value."""

PROXY_SCHEMES: Final = ("http", "https", "socks5", "socks5h")
DIRECT: Final = "direct"
"""The name of no proxy."""
_RULE_KEYS: Final = frozenset({"hosts", "headers", "cookies", "basic", "bearer", "proxy", "country", "impersonate"})
_PROXY_KEYS: Final = frozenset({"url", "country", "user", "password"})
_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""A token (RFC 9110, section 5.6.2)."""
_PATTERN: Final = re.compile(
    r"(?:(?P<scheme>https?)://)?(?P<host>\*\.[^\s/:*]+|[^\s/:*]+|\[[0-9A-Fa-f:.]+\])(?::(?P<port>\d+))?"
)
_PROFILE: Final = re.compile(r"[a-z]+[0-9_a-z]*")
_COUNTRY: Final = re.compile(r"[A-Za-z]{2}")
_OURS: Final = frozenset({"host", "content-length", "transfer-encoding", "connection", "accept-encoding", "cookie"})
_CLOSED: Final = re.compile(r"[\r\n\0]")
_COOKIE_CLOSED: Final = re.compile(r"[\x00-\x20\x7f\",;\\]")
"""What a cookie's value may not hold (RFC 6265, section 4.1.1)."""

Secret: TypeAlias = Callable[[Any, str], str]
"""The text that a value of the file stands for, given where it stands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """How one URL is reached, and as whom."""

    fields: Fields = field(default=(), repr=False)
    """Header fields with credentials, for this origin alone."""
    proxy: str | None = field(default=None, repr=False)
    """The proxy's URL; empty for none, None for that of the settings."""
    impersonate: str = ""
    """The browser whose TLS and HTTP/2 handshake is spoken; empty for our own."""

    @property
    def signed_in(self) -> bool:
        """Whether the page is fetched as somebody."""
        return bool(self.fields)


PLAIN: Final = Access()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """Which URLs a rule is for."""

    host: str
    """A host, or what follows `*` where `subdomains`."""
    subdomains: bool
    """Whether it is for the names below the host instead."""
    scheme: str = ""
    port: int | None = None

    def matches(self, scheme: str, host: str, port: int) -> bool:
        """Whether a URL with these parts is meant."""
        named = host.endswith(f".{self.host}") if self.subdomains else host == self.host
        return named and self.scheme in {"", scheme} and (self.port or _default_port(scheme)) == port


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What holds for the URLs of some patterns."""

    patterns: tuple[Pattern, ...]
    fields: Fields = field(default=(), repr=False)
    proxy: str | None = field(default=None, repr=False)
    impersonate: str = ""


class AccessRules:
    """All rules of an access file; without any, every URL is reached plainly."""

    def __init__(self, rules: Iterable[Rule] = ()) -> None:
        self._rules = tuple(rules)
        self._of_origin = lru_cache(maxsize=16_384)(self._found)

    @classmethod
    def compile(cls, document: Mapping[str, Any], environ: Mapping[str, str]) -> Self:
        """The rules of a parsed access file; raises SettingsError, which shows no secret."""
        unknown = sorted(set(document) - {"proxies", "rule"})
        if unknown:
            raise SettingsError(f"the access file has {unknown[0]!r}; it takes [proxies] and [[rule]]")
        secret = _secrets(environ)
        proxies = Proxies.compile(_table(document.get("proxies", {}), "[proxies]"), secret)
        rules = document.get("rule", [])
        if not isinstance(rules, list):
            raise SettingsError("the access file has [rule]; write [[rule]], once for each")
        return cls(_rule(_table(one, f"rule {at}"), f"rule {at}", proxies, secret) for at, one in enumerate(rules, 1))

    @property
    def profiles(self) -> frozenset[str]:
        """The browsers that rules impersonate."""
        return frozenset(rule.impersonate for rule in self._rules if rule.impersonate)

    def of(self, canonical_url: str) -> Access:
        """How a canonical URL is reached."""
        return self._of_origin(origin_of(canonical_url)) if self._rules else PLAIN

    def _found(self, origin: str) -> Access:
        parts, host = urlsplit(origin), hostname_of(origin)
        port = parts.port or _default_port(parts.scheme)
        access, fields = PLAIN, dict[str, tuple[str, str]]()
        for rule in self._rules:
            matching = [one for one in rule.patterns if one.matches(parts.scheme, host, port)]
            if not matching:
                continue
            if parts.scheme == "https" or any(one.scheme for one in matching):
                fields.update({name.lower(): (name, value) for name, value in rule.fields})
            access = replace(
                access,
                proxy=access.proxy if rule.proxy is None else rule.proxy,
                impersonate=rule.impersonate or access.impersonate,
            )
        return replace(access, fields=tuple(fields.values()))


@dataclass(frozen=True, slots=True)
class Proxies:
    """The proxies that an access file names."""

    urls: Mapping[str, str] = field(repr=False)
    """By name."""
    countries: Mapping[str, str] = field(repr=False)
    """By country, in upper case, the URL of the first of them that is there."""

    @classmethod
    def compile(cls, tables: Mapping[str, Any], secret: Secret) -> Self:
        """The proxies of `[proxies]`; raises SettingsError."""
        urls: dict[str, str] = {}
        countries: dict[str, str] = {}
        for name, value in tables.items():
            where = f"proxies.{name}"
            table = {"url": value} if isinstance(value, str) else _table(value, where)
            _only(table, _PROXY_KEYS, where)
            urls[name] = _proxy_url(table, where, secret)
            if "country" in table:
                countries.setdefault(_country(table["country"], where), urls[name])
        return cls(urls, countries)

    def named(self, name: Any, where: str) -> str:
        """The URL of a proxy by its name; empty for `direct`."""
        if name == DIRECT:
            return ""
        if name not in self.urls:
            known = ", ".join([DIRECT, *self.urls])
            raise SettingsError(f"{where} of the access file names the proxy {name!r}; there are {known}")
        return self.urls[name]

    def in_country(self, country: Any, where: str) -> str:
        """The URL of the first proxy in a country."""
        code = _country(country, where)
        if code not in self.countries:
            known = ", ".join(self.countries) or "none"
            raise SettingsError(f"{where} of the access file wants a proxy in {code}; the countries are {known}")
        return self.countries[code]


def checked_proxy(url: str, name: str) -> str:
    """A proxy's URL, if it can be used; raises SettingsError, which does not show its password."""
    parts = urlsplit(url)
    try:
        usable = parts.scheme in PROXY_SCHEMES and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or _CLOSED.search(url):
        shown = url.rpartition("@")[2]
        raise SettingsError(f"{name} = {shown!r} cannot be used; it takes http://, https:// or socks5://HOST:PORT")
    return url


def _rule(table: Mapping[str, Any], where: str, proxies: Proxies, secret: Secret) -> Rule:
    _only(table, _RULE_KEYS, where)
    patterns = tuple(_pattern(text, where) for text in _texts(table.get("hosts"), f"{where}.hosts"))
    if not patterns:
        raise SettingsError(f"{where} of the access file has no hosts")
    fields = _credentials(table, where, secret)
    if fields:
        _narrow(patterns, where)
    if "proxy" in table and "country" in table:
        raise SettingsError(f"{where} of the access file has both proxy and country; a proxy has its country already")
    proxy = None
    if "proxy" in table:
        proxy = proxies.named(table["proxy"], where)
    elif "country" in table:
        proxy = proxies.in_country(table["country"], where)
    profile = table.get("impersonate", "")
    if not isinstance(profile, str) or (profile and not _PROFILE.fullmatch(profile)):
        raise SettingsError(f"{where}.impersonate of the access file takes the name of a browser, such as chrome")
    return Rule(patterns=patterns, fields=fields, proxy=proxy, impersonate=profile)


def _credentials(table: Mapping[str, Any], where: str, secret: Secret) -> Fields:
    """The header fields of a rule."""
    headers = _secret_texts(table, "headers", where, secret)
    fields = [_field(name, value, where) for name, value in headers.items()]
    cookies = [_cookie(name, value, where) for name, value in _secret_texts(table, "cookies", where, secret).items()]
    if cookies:
        fields.append(("Cookie", "; ".join(cookies)))
    if "basic" in table and "bearer" in table:
        raise SettingsError(f"{where} of the access file has both basic and bearer; a request has one Authorization")
    if "bearer" in table:
        fields.append(_field("Authorization", f"Bearer {secret(table['bearer'], f'{where}.bearer')}", where))
    if "basic" in table:
        basic = _table(table["basic"], f"{where}.basic")
        _only(basic, frozenset({"user", "password"}), f"{where}.basic")
        user, password = (secret(basic.get(name, ""), f"{where}.basic.{name}") for name in ("user", "password"))
        if ":" in user:
            raise SettingsError(f"{where}.basic.user of the access file holds a colon, which cannot be sent (RFC 7617)")
        fields.append(("Authorization", f"Basic {b64encode(f'{user}:{password}'.encode()).decode()}"))
    return tuple(fields)


def _secret_texts(table: Mapping[str, Any], name: str, where: str, secret: Secret) -> dict[str, str]:
    found = _table(table.get(name, {}), f"{where}.{name}")
    return {key: secret(value, f"{where}.{name}.{key}") for key, value in found.items()}


def _field(name: str, value: str, where: str) -> tuple[str, str]:
    if not _NAME.fullmatch(name) or name.lower() in _OURS:
        raise SettingsError(f"{where}.headers of the access file sets {name!r}, which cannot be set there")
    if _CLOSED.search(value):
        raise SettingsError(f"{where} of the access file: the value for {name} holds a line break")
    return name, value


def _cookie(name: str, value: str, where: str) -> str:
    if not _NAME.fullmatch(name) or _COOKIE_CLOSED.search(value.strip('"')):
        raise SettingsError(f"{where}.cookies of the access file: {name!r} or its value cannot stand in a cookie")
    return f"{name}={value}"


def _pattern(text: str, where: str) -> Pattern:
    match = _PATTERN.fullmatch(text.strip().lower())
    if match is None:
        raise SettingsError(
            f"{where}.hosts of the access file has {text!r}; it takes example.com, *.example.com or https://example.com"
        )
    host, port = match["host"], match["port"]
    if port is not None and not 0 < int(port) < 65_536:
        raise SettingsError(f"{where}.hosts of the access file has {text!r}, whose port is none")
    subdomains = host.startswith("*.")
    try:
        bare = hostname_of(canonical(f"http://{host.removeprefix('*.')}/"))
    except InvalidUrlError:
        raise SettingsError(f"{where}.hosts of the access file has {text!r}, which is no host") from None
    return Pattern(
        host=bare, subdomains=subdomains, scheme=match["scheme"] or "", port=int(port) if port is not None else None
    )


def _narrow(patterns: Iterable[Pattern], where: str) -> None:
    """Raise SettingsError if credentials would go to hosts that have different owners."""
    for pattern in patterns:
        if pattern.subdomains and is_public_suffix(pattern.host):
            raise SettingsError(
                f"{where} of the access file would send credentials to all of *.{pattern.host}; name the host"
            )


def _proxy_url(table: Mapping[str, Any], where: str, secret: Secret) -> str:
    url = checked_proxy(secret(table.get("url", ""), f"{where}.url"), f"{where}.url of the access file")
    if "user" not in table and "password" not in table:
        return url
    user, password = (secret(table.get(name, ""), f"{where}.{name}") for name in ("user", "password"))
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{quote(user, safe='')}:{quote(password, safe='')}@{host}"))


def _country(value: Any, where: str) -> str:
    if not isinstance(value, str) or not _COUNTRY.fullmatch(value):
        raise SettingsError(f"{where}.country of the access file takes two letters (ISO 3166), such as DE")
    return value.upper()


def _secrets(environ: Mapping[str, str]) -> Secret:
    def secret(value: Any, where: str) -> str:
        if isinstance(value, str):
            return value
        if isinstance(value, Mapping) and set(value) == {"variable"} and isinstance(value["variable"], str):
            if value["variable"] not in environ:
                raise SettingsError(
                    f"{where} of the access file names the variable {value['variable']}, which is not set"
                )
            return environ[value["variable"]].strip()
        raise SettingsError(f'{where} of the access file takes a text, or {{ variable = "NAME" }}')

    return secret


def _table(value: Any, where: str) -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        return value
    raise SettingsError(f"{where} of the access file is no table")


def _texts(value: Any, where: str) -> list[str]:
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return value
    raise SettingsError(f"{where} of the access file is no list of texts")


def _only(table: Mapping[str, Any], known: Iterable[str], where: str) -> None:
    for name in table:
        if name not in known:
            raise SettingsError(f"{where} of the access file has {name!r}; it takes {', '.join(sorted(known))}")


def _default_port(scheme: str) -> int:
    return 443 if scheme == "https" else 80
