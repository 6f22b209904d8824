"""What commands say to people: text from the network that cannot steer their terminal."""

import re
import sys
from typing import Final

import click

_STEERING: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, escape sequences' beginnings among them, but for line feeds and tabs; what turns the order of
text around (Unicode, UAX 9); halves of characters. Joiners stay: scripts need them."""


def printable(text: str) -> str:
    """The text with U+FFFD for each character that could steer a terminal or turn the order of what it shows."""
    return _STEERING.sub("\ufffd", text)


def tell(text: str = "", *, err: bool = False) -> None:
    """Print a text for people, to standard output or standard error."""
    click.echo(printable(text), err=err)


def hand_over(text: str) -> None:
    """Print content: as it is into a file or a pipe, printable on a terminal."""
    click.echo(printable(text) if sys.stdout.isatty() else text, color=True)  # click takes nothing out then
