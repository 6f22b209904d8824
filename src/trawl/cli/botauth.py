"""`trawl botauth`: the key by which sites can check who asks, and the directory in which they look it up."""

import json
from pathlib import Path

import click

from trawl.cli.options import needs
from trawl.cli.terminal import tell

_DAY_SECONDS = 86_400


@click.group(short_help="Keys by which sites can check who asks (Web Bot Auth).")
def botauth() -> None:
    """Make a key that signs requests, and the key directory in which sites look it up (Web Bot Auth, RFC 9421)."""


@botauth.command(short_help="Make a key.")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def keygen(file: Path) -> int:
    """Make an Ed25519 key in FILE, which only you may read. Name it in the setting fetch.botauth_key_file."""
    with needs("botauth"):
        from trawl.adapters.botauth.signing import make_key, thumbprint  # noqa: PLC0415 - an extra
    key = make_key(file)
    tell(f"{file}: a new key, {thumbprint(key)}")
    tell(f"sign requests with it:  TRAWL_FETCH_BOTAUTH_KEY_FILE={file} trawl crawl …")
    tell(f"publish its directory:  trawl botauth directory {file}")
    return 0


@botauth.command(short_help="Print the key directory.")
@click.argument("keys", nargs=-1, required=True, type=click.Path(dir_okay=False, path_type=Path), metavar="KEY...")
@click.option("--authority", metavar="HOST", help="Print the header fields as well, signed for this host.")
@click.option("--days", type=click.IntRange(1, 365), default=30, show_default=True, help="How long those hold.")
def directory(keys: tuple[Path, ...], authority: str | None, days: int) -> int:
    """Print the directory of these KEYs as JSON, without anything secret.

    Serve it under https://HOST/.well-known/http-message-signatures-directory, and name https://HOST in the setting
    fetch.botauth_agent_url. With --authority the header fields of that answer come first, and an empty line.
    """
    with needs("botauth"):
        from trawl.adapters.botauth import signing  # noqa: PLC0415 - an extra
    found = [signing.read_key(path) for path in keys]
    if authority:
        tell(f"Content-Type: {signing.DIRECTORY_TYPE}")
        for at, key in enumerate(found, 1):
            signer = signing.WebBotAuth(key, valid_seconds=days * _DAY_SECONDS)
            for name, value in signer.directory_fields(authority, f"sig{at}"):
                tell(f"{name}: {value}")
        tell()
    click.echo(json.dumps(signing.directory(found), indent=2))
    return 0
