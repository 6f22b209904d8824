"""Wiring: a browser that reaches what the fetcher may reach, and nothing else."""

from trawl.adapters.browser import HOW_TO, Check, RefusedError, is_there, open_renderer
from trawl.errors import SettingsError
from trawl.fetcher.addresses import AddressGuard, port_refused, written_address
from trawl.ports import Renderer, Resolver
from trawl.settings import Settings


def open_browser(settings: Settings, resolver: Resolver) -> Renderer | None:
    """The browser that the settings ask for; None if they ask for none. It starts when it is first needed.

    Raises SettingsError if it is asked for and there is none.
    """
    if settings.browser.render == "never":
        return None
    if not is_there(settings.browser):
        raise SettingsError(
            f"browser.render = {settings.browser.render!r} needs a browser, and there is none; {HOW_TO}"
        )
    return open_renderer(settings.browser, checked(settings, resolver), ca_file=settings.fetch.ca_file)


def checked(settings: Settings, resolver: Resolver) -> Check:
    """By what each host that a page asks for is judged: the same ports, addresses and networks as for the fetcher."""
    guard = AddressGuard.compile(settings.fetch.allow_networks)

    async def check(host: str, port: int, proxied: bool) -> tuple[str, ...]:
        if port_refused(port):
            raise RefusedError
        literal = written_address(host)
        if proxied:  # the proxy resolves names; an address that is written out can be judged all the same
            if literal and guard.refusal(literal):
                raise RefusedError
            return ()
        found = await resolver.resolve(host)
        allowed = tuple(address for address in found.addresses if not guard.refusal(address))
        if not allowed:
            raise RefusedError
        return allowed

    return check
