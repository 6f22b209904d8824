"""`trawl dlq`: the dead letters of a deployed system, listed, shown, and sent again."""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from trawl.adapters.blobs import open_blobs
from trawl.cli.options import config_option, json_option, kafka_option, kafka_settings, needs
from trawl.cli.progress import counted
from trawl.cli.terminal import tell
from trawl.errors import SettingsError, TrawlError
from trawl.kinds import Stage
from trawl.pipeline import TOPIC
from trawl.plain import to_plain
from trawl.records import DeadLetter, Millis
from trawl.settings import Settings

if TYPE_CHECKING:
    from trawl.adapters.kafka import Letter, Letters, Listing, RecordProducer, Replayed

_F = TypeVar("_F", bound=Callable[..., Any])
_T = TypeVar("_T")
_HOUR_MS: Final = 3_600_000
_SHOWN_CHARS_MAX: Final = 4000
"""Of a record that is shown to people; --json and --payload give all of it."""
_HEX_BYTES_MAX: Final = 64


def _choosing(command: _F) -> _F:
    """Which letters are meant."""
    for option in (
        click.option("--since", "hours", type=click.FloatRange(0), metavar="HOURS", help="Only of the last hours."),
        click.option("--topic", type=click.Choice(list(TOPIC)), metavar="T", help="Only of records from this topic."),
        click.option("--reason", metavar="R", help="Only with this reason, such as RecordDecodeError."),
        click.option("--stage", type=click.Choice([str(stage) for stage in Stage]), help="Only of this stage."),
    ):
        command = option(command)
    return command


@click.group(short_help="Look at dead letters of a deployed system, and send them again.")
def dlq() -> None:
    """Look at dead letters: records that a stage could not handle, kept whole. After a fix, send them again."""


@dlq.command("list", short_help="List dead letters.")
@_choosing
@click.option("--limit", type=click.IntRange(1, 100_000), default=20, show_default=True, metavar="N",
              help="The newest N.")  # fmt: skip
@kafka_option
@config_option
@json_option
def list_letters(limit: int, kafka: str | None, config: Path | None, as_json: bool, **options: Any) -> int:
    """List dead letters, the newest last, each with its number, and whether it was sent again."""
    settings = kafka_settings(config, kafka)

    async def listed(letters: "Letters", _: "RecordProducer") -> "Listing":
        return await letters.listed(_wanted(options), since_ms=_since_ms(options["hours"]), limit=limit)

    found = asyncio.run(_with_letters(settings, listed))
    if as_json:
        click.echo(json.dumps({
            "letters": [_brief(letter) for letter in found.letters],
            "matching": found.matching,
            "never_replayed": found.open,
            "unreadable": found.unreadable,
        }))  # fmt: skip
    else:
        tell(_told_listing(found))
    return int(bool(found.unreadable) and not found.matching)


@dlq.command(short_help="Show one dead letter.")
@click.argument("number", type=click.IntRange(0))
@click.option("--payload", is_flag=True, help="Write the record's bytes to standard output, and nothing else.")
@kafka_option
@config_option
@json_option
def show(number: int, payload: bool, kafka: str | None, config: Path | None, as_json: bool) -> int:
    """Show one dead letter by its number: where it came from, why it was given up, and what is in it."""
    settings = kafka_settings(config, kafka)

    async def shown(letters: "Letters", _: "RecordProducer") -> tuple["Letter", bytes, list[Any], str]:
        letter = await letters.letter(number)
        data = await letters.data(letter.letter)
        try:
            records = await letters.contents(letter.letter)
        except TrawlError as error:
            return letter, data, [], str(error)
        return letter, data, [{type(record).__name__: to_plain(record)} for record in records], ""

    letter, data, records, unreadable = asyncio.run(_with_letters(settings, shown))
    if payload:
        sys.stdout.buffer.write(data)
    elif as_json:
        about = {"error": letter.letter.error, "bytes": len(data), "records": records, "unreadable": unreadable}
        click.echo(json.dumps({**_brief(letter), **about}, ensure_ascii=False))
    else:
        tell(_told_letter(letter, data, records, unreadable))
    return 0


@dlq.command(short_help="Send dead letters again.")
@click.argument("numbers", nargs=-1, type=click.IntRange(0), metavar="[NUMBER]...")
@click.option("--all", "everything", is_flag=True, help="All that were never sent again.")
@_choosing
@click.option("--again", is_flag=True, help="Also those that were sent again before.")
@kafka_option
@config_option
@json_option
def replay(
    numbers: tuple[int, ...], everything: bool, again: bool, kafka: str | None, config: Path | None, as_json: bool,
    **options: Any,
) -> int:  # fmt: skip
    """Send dead letters again: the same bytes to the same topic and partition, under the same key.

    What was sent again is noted, so that the same command sends it once. The exit code is 1 if a letter could not be
    sent.
    """
    settings = kafka_settings(config, kafka)
    if not numbers and not everything and all(value is None for value in options.values()):
        raise SettingsError("no dead letter is named; give numbers, or --all, or options that choose some")

    async def replayed(letters: "Letters", producer: "RecordProducer") -> "Replayed":
        await producer.open()
        return await letters.replay(
            _wanted(options),
            producer,
            numbers=set(numbers) or None,
            since_ms=_since_ms(options["hours"]),
            again=again,
        )

    done = asyncio.run(_with_letters(settings, replayed))
    if as_json:
        refused = [{"number": number, "why": why} for number, why in done.refused]
        told = {"sent": done.sent, "sent_before": done.before, "refused": refused, "unreadable": done.unreadable}
        click.echo(json.dumps(told))
    else:
        tell(_told_replay(done))
    return int(bool(done.refused or done.unreadable))


async def _with_letters(settings: Settings, act: "Callable[[Letters, RecordProducer], Awaitable[_T]]") -> _T:
    with needs("kafka"):
        from trawl.adapters.kafka import Letters, RecordProducer, open_codec  # noqa: PLC0415 - an extra
    async with AsyncExitStack() as stack:
        codec = await open_codec(settings.kafka, blobs=None)
        stack.push_async_callback(codec.close)
        producer = RecordProducer(settings.kafka, codec)
        stack.push_async_callback(producer.close)
        return await act(Letters(settings.kafka, codec, open_blobs(settings.blobs, Path.cwd())), producer)


def _wanted(options: dict[str, Any]) -> Callable[[DeadLetter], bool]:
    chosen = {name: options[name] for name in ("stage", "reason", "topic") if options[name] is not None}
    return lambda letter: all(getattr(letter, name) == value for name, value in chosen.items())


def _since_ms(hours: float | None) -> Millis:
    return 0 if hours is None else max(int(1000 * time.time() - hours * _HOUR_MS), 1)


# For people and programs


def _brief(letter: "Letter") -> dict[str, Any]:
    found = letter.letter
    return {
        "number": letter.number,
        "at_ms": found.at_ms,
        "stage": str(found.stage),
        "reason": found.reason,
        "topic": found.topic,
        "partition": found.partition,
        "offset": found.offset,
        "key": found.key.decode("latin-1"),
        "payload_bytes": found.payload.size_bytes,
        "payload_ref": found.payload.ref,
        "replayed_at_ms": letter.replayed_at_ms or None,
    }


def _told_listing(found: "Listing") -> str:
    lines = []
    if found.letters:
        lines.append("number  given up at           stage      from                             bytes  reason")
    for letter in found.letters:
        one = letter.letter
        again = f"  (sent again {_time(letter.replayed_at_ms)})" if letter.replayed_at_ms else ""
        lines.append(
            f"{letter.number:>6}  {_time(one.at_ms)}  {one.stage:<9}  {_place(one):<27}  {one.payload.size_bytes:>9}"
            f"  {one.reason}{again}"
        )
    lines.append(f"{counted(found.matching, 'dead letter')}, {found.open} never sent again")
    if found.unreadable:
        lines.append(found.unreadable_told)
    return "\n".join(lines)


def _told_letter(letter: "Letter", data: bytes, records: list[Any], unreadable: str) -> str:
    one = letter.letter
    lines = [
        f"dead letter {letter.number}",
        f"  from      {_place(one)}, key {one.key.decode('latin-1')!r}",
        f"  given up  {_time(one.at_ms)} by the {one.stage}: {one.reason}",
    ]
    if letter.replayed_at_ms:
        lines.append(f"  again     sent at {_time(letter.replayed_at_ms)}")
    lines.append(f"  bytes     {len(data)}{f', in the blob {one.payload.ref}' if one.payload.ref else ''}")
    lines += [f"  {line}" for line in one.error.splitlines()]
    if unreadable:
        lines.append(f"cannot be read: {unreadable}")
        lines.append(f"begins with {data[:_HEX_BYTES_MAX].hex(' ')}")
    for record in records:
        text = json.dumps(record, ensure_ascii=False, indent=2)
        more = len(text) - _SHOWN_CHARS_MAX
        lines.append(text[:_SHOWN_CHARS_MAX] + (f"\n… {more} characters more; --json shows all" if more > 0 else ""))
    return "\n".join(lines)


def _told_replay(done: "Replayed") -> str:
    lines = [f"{counted(len(done.sent), 'dead letter')} sent again"]
    if done.before:
        lines.append(f"{len(done.before)} left out, since sent again before; --again sends them too")
    lines += [f"{number} cannot be sent: {why}" for number, why in done.refused]
    if done.unreadable:
        lines.append(done.unreadable_told)
    return "\n".join(lines)


def _place(letter: DeadLetter) -> str:
    return f"{letter.topic}[{letter.partition}]@{letter.offset}"


def _time(at_ms: Millis) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(at_ms / 1000))
