"""From options of the command line to settings."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from ipaddress import ip_network
from pathlib import Path
from typing import Any, TypeVar

import click

from trawl.errors import SettingsError
from trawl.settings import FILE_VARIABLE, Settings, load, read

_F = TypeVar("_F", bound=Callable[..., Any])


def config_option(command: _F) -> _F:
    """The `--config` option."""
    option = click.option(
        "--config",
        type=click.Path(dir_okay=False, path_type=Path),
        envvar=FILE_VARIABLE,
        show_envvar=True,
        help="A TOML file of settings.",
    )
    return option(command)


def json_option(command: _F) -> _F:
    """The `--json` option."""
    return click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")(command)


def kafka_option(command: _F) -> _F:
    """The `--kafka` option."""
    text = "A broker.  [default: those of the setting kafka.bootstrap_servers]"
    return click.option("--kafka", metavar="HOST:PORT", help=text)(command)


def network_options(command: _F) -> _F:
    """How the network is reached."""
    for option in (
        click.option("--allow-network", multiple=True, metavar="CIDR", help="Fetch from this private network too."),
        click.option("--ca-file", metavar="PEM", help="Trust these certificate authorities instead of the system's."),
        click.option("--access", metavar="FILE", help="A TOML file of credentials and proxies by host."),
        click.option("--proxy", metavar="URL", help="Fetch through this HTTP, HTTPS or SOCKS5 proxy."),
        click.option("--header", multiple=True, metavar="'HOST: NAME: VALUE'", help="Send a header to one host."),
        click.option("--user-agent", metavar="UA", help="Who we are; its first token is looked up in robots.txt."),
    ):
        command = option(command)
    return command


def render_option(command: _F) -> _F:
    """The `--render` option."""
    text = (
        "Which pages a browser shows: none, those that need it and a sample, or all."
        "  [default: that of the setting browser.render]"
    )
    return click.option("--render", type=click.Choice(["never", "auto", "always"]), help=text)(command)


def settings_of(config: Path | None, options: Mapping[str, Any]) -> Settings:
    """Settings from file, environment and the command line; raises SettingsError."""
    return _checked(_with_options(load(read(config), os.environ), options))


def kafka_settings(config: Path | None, kafka: str | None) -> Settings:
    """Settings from file and environment, and the broker that the command line names; raises SettingsError."""
    settings = settings_of(config, {})
    if kafka is None:
        return settings
    servers = tuple(part.strip() for part in kafka.split(",") if part.strip())
    for server in servers:
        host, _, port = server.rpartition(":")
        if not host or not port.isdigit():
            raise SettingsError(f"--kafka {kafka} cannot be used; it takes HOST:PORT, or several with commas between")
    if not servers:
        raise SettingsError("--kafka is empty; it takes HOST:PORT")
    return replace(settings, kafka=replace(settings.kafka, bootstrap_servers=servers))


@contextmanager
def needs(extra: str) -> Iterator[None]:
    """Around the import of an adapter: what a plain installation has not is a SettingsError that says how to get it."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise SettingsError(f"this needs more than is installed ({error}): pip install 'trawl[{extra}]'") from error


def _with_options(settings: Settings, options: Mapping[str, Any]) -> Settings:
    def given(**names: str) -> dict[str, Any]:
        found = {setting: options.get(option) for setting, option in names.items()}
        return {setting: value for setting, value in found.items() if value not in {None, ()}}

    pacing = given(delay_seconds="delay", per_host_concurrency="per_host_concurrency")
    if pacing.get("delay_seconds") == 0:
        pacing["adaptive_factor"] = 0.0
    return replace(
        settings,
        fetch=replace(
            settings.fetch,
            **given(
                user_agent="user_agent",
                headers="header",
                proxy="proxy",
                access_file="access",
                ca_file="ca_file",
                allow_networks="allow_network",
            ),
        ),
        browser=replace(settings.browser, **given(render="render")),
        politeness=replace(settings.politeness, **pacing),
        embedded=replace(
            settings.embedded,
            **given(fetch_workers="fetch_workers", extract_workers="extract_workers", index_workers="index_workers"),
        ),
    )


def _checked(settings: Settings) -> Settings:
    for network in settings.fetch.allow_networks:
        try:
            ip_network(network, strict=False)
        except ValueError as error:
            raise SettingsError(f"--allow-network {network} is not a network in CIDR form: {error}") from error
    for header in settings.fetch.headers:
        if header.count(":") < 2:
            raise SettingsError(f"--header {header!r} cannot be used; it takes 'HOST: NAME: VALUE'")
    if not settings.fetch.user_agent.strip():
        raise SettingsError("the User-Agent cannot be empty; it says to a site's owner who asks, and how to reach you")
    if settings.fetch.ca_file and not Path(settings.fetch.ca_file).is_file():
        raise SettingsError(f"--ca-file {settings.fetch.ca_file} is not a file")
    return settings
