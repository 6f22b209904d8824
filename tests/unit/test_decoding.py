"""Content codings, taken off in pieces under caps."""

import gzip
import zlib

import cramjam
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from trawl.adapters.http.decoding import Body, BodyCaps, is_text

CAPS = BodyCaps(
    body_bytes_max=1_000_000, wire_bytes_max=1_000_000, ratio_max=1e9, ratio_bytes_min=1_000_000, layers_max=2
)
ENCODERS = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": lambda data: bytes(cramjam.brotli.compress(data)),
    "zstd": zstandard.compress,
}
codings = st.lists(st.sampled_from(sorted(ENCODERS)), max_size=2)


def encoded(data: bytes, names: list[str]) -> bytes:
    for name in names:
        data = ENCODERS[name](data)
    return data


def feed(body: Body, data: bytes, step: int) -> str:
    for start in range(0, len(data), step):
        reason = body.feed(data[start : start + step])
        if reason:
            return reason
    return body.finish()


@settings(max_examples=60)
@given(st.binary(max_size=3000), codings, st.integers(1, 700), st.sampled_from(["one field", "many fields"]))
def test_what_was_coded_comes_back_however_it_is_cut(data: bytes, names: list[str], step: int, form: str) -> None:
    body = Body(names if form == "many fields" else [", ".join(names)], CAPS)
    assert feed(body, encoded(data, names), step) == ""
    assert body.content() == data


@settings(max_examples=60)
@given(st.binary(max_size=500), codings, st.integers(1, 700))
def test_no_bytes_under_any_label_are_an_error(data: bytes, names: list[str], step: int) -> None:
    reason = feed(Body(names, CAPS), data, step)
    assert reason in {"", "bad_encoding", "truncated", "body_too_large"}


@given(st.binary(min_size=200, max_size=2000), st.sampled_from(sorted(ENCODERS)), st.data())
def test_a_coded_body_that_ends_early_is_truncated(data: bytes, name: str, draw: st.DataObject) -> None:
    whole = encoded(data, [name])
    cut = whole[: draw.draw(st.integers(len(whole) // 2, len(whole) - 1))]
    assert feed(Body([name], CAPS), cut, 100) == "truncated"


def test_members_one_after_the_other_are_one_body_and_litter_after_them_is_ignored() -> None:
    for name in ("gzip", "zstd"):
        two = ENCODERS[name](b"one ") + ENCODERS[name](b"two")
        for step in (1, 7, 1000):
            body = Body([name], CAPS)
            assert feed(body, two + b"\0\0\0litter", step) == ""
            assert body.content() == b"one two"


def test_deflate_is_read_with_and_without_its_frame() -> None:
    raw = zlib.compressobj(wbits=-15)
    body = Body(["deflate"], CAPS)
    assert feed(body, raw.compress(b"words " * 100) + raw.flush(), 1) == ""
    assert body.content() == b"words " * 100


@pytest.mark.parametrize("name", sorted(ENCODERS))
def test_the_cap_holds_to_the_byte(name: str) -> None:
    data = encoded(b"x" * 5000, [name])
    exact = BodyCaps(body_bytes_max=5000, wire_bytes_max=10**6, ratio_max=1e9, ratio_bytes_min=10**6, layers_max=2)
    less = BodyCaps(body_bytes_max=4999, wire_bytes_max=10**6, ratio_max=1e9, ratio_bytes_min=10**6, layers_max=2)
    assert feed(Body([name], exact), data, 100) == ""
    assert feed(Body([name], less), data, 100) == "body_too_large"


def test_an_inner_layer_cannot_hide_a_bomb() -> None:
    inner = gzip.compress(b"small") + bytes(50_000_000)  # litter that only the outer layer unpacks
    assert feed(Body(["gzip, gzip"], CAPS), gzip.compress(inner), 10_000) == "body_too_large"


def test_a_window_larger_than_the_web_allows_is_refused() -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=27, write_content_size=False)
    frame = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    data = frame.compress(b"\x01" * 100) + frame.flush()
    assert feed(Body(["zstd"], CAPS), data, 1000) == "bad_encoding"


def test_text_is_told_from_binary() -> None:
    assert is_text(b"<p>caf\xe9")
    assert is_text("\ufeffwords in größe".encode())
    assert is_text(b"\n plain words\n")
    for data in (b"", b"  ", b"\x1f\x8b\x08", b"caf\xe9 without a tag", bytes(range(256)), b"\x89PNG\r\n"):
        assert not is_text(data)
