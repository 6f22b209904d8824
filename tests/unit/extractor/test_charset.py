"""Bytes to text: the conformance cases whole, then what real servers do wrong."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.data import require
from trawl.extractor.charset import decode, sniff
from trawl.extractor.encodings import CODECS, LABELS, decoded, from_label
from trawl.extractor.prescan import prescan

JAPANESE = "日本語の文章です。カタカナも入ります。東京は日本の首都です。"
CHINESE = "中华人民共和国是世界上人口最多的国家之一，我们在这里写一些中文。"
RUSSIAN = "Съешь же ещё этих мягких французских булок, да выпей чаю. Россия."


def conformance_cases() -> list[tuple[str, bytes, str]]:
    cases = []
    for path in sorted(require("conformance").joinpath("encoding").glob("*.dat")):
        for case in re.split(rb"(?:^|\n)#data\n", path.read_bytes())[1:]:
            data, _, wanted = case.partition(b"\n#encoding\n")
            cases.append((path.name, data, wanted.strip().split(b"\n")[0].decode().lower()))
    return cases


@pytest.mark.data
def test_every_html5lib_sniffing_case_gives_the_expected_encoding() -> None:
    cases = conformance_cases()
    assert len(cases) >= 82
    wrong = [
        (name, data[:80], wanted, got) for name, data, wanted in cases if (got := sniff(data)[0]) != from_label(wanted)
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        (b"<meta httpequiv=ContentType content=text/html;charset=gbk><p>" + CHINESE.encode("gbk"), "gbk"),
        (b'<meta http-equiv="Content-Type" content="text/html; gb2312"><p>' + CHINESE.encode("gbk"), "gbk"),
        (b"<p>" + JAPANESE.encode("cp932") + b"</p>", "shift_jis"),
        (b"<p>" + JAPANESE.encode("euc_jp") + b"</p>", "euc-jp"),
        (b"<p>" + JAPANESE.encode("iso2022_jp") + b"</p>", "iso-2022-jp"),
    ],
)
def test_case_29_broken_or_missing_declarations_are_read_by_hint_and_statistics(body: bytes, wanted: str) -> None:
    found = decode(body)
    assert found.charset == wanted
    assert "\ufffd" not in found.text


@pytest.mark.parametrize(
    ("codec", "text", "wanted"),
    [
        ("gb18030", CHINESE, "gbk"),
        ("big5", "我們在這裡寫一些繁體中文的測試文字，臺灣是一個美麗的島嶼。", "big5"),
        ("euc_kr", "한국어 문장을 여기에 씁니다. 대한민국의 수도는 서울입니다.", "euc-kr"),
        ("cp1251", RUSSIAN, "windows-1251"),
        ("koi8_r", RUSSIAN, "koi8-r"),
        ("iso8859_5", RUSSIAN, "iso-8859-5"),
        ("cp866", RUSSIAN, "ibm866"),
        ("cp1253", "Η Ελλάδα είναι μια χώρα στην νοτιοανατολική Ευρώπη", "windows-1253"),
        ("cp1255", "ישראל היא מדינה במזרח התיכון ובירתה היא ירושלים", "windows-1255"),
        ("cp1256", "اللغة العربية هي أكثر اللغات تحدثا ضمن مجموعة", "windows-1256"),
        ("cp1250", "Zażółć gęślą jaźń, Polska jest krajem w środkowej Europie", "windows-1250"),
        ("cp1252", "Le français est une langue, été, à la forêt où ça «œuvre»", "windows-1252"),
        ("cp1252", "Größe, Übung, schöne Grüße aus München", "windows-1252"),
    ],
)
def test_undeclared_legacy_text_is_recognised_by_its_letters(codec: str, text: str, wanted: str) -> None:
    found = decode(b"<html><body><p>" + text.encode(codec) + b"</p></body></html>")
    assert found.charset == wanted
    assert text in found.text


def test_a_byte_order_mark_beats_the_header_and_is_not_text() -> None:
    assert decode(b"\xef\xbb\xbfh\xc3\xa9", "text/html; charset=iso-8859-1") == ("hé", "utf-8", "bom")
    assert decode("\ufeffhé".encode("utf-16-le"), None).text == "hé"


def test_the_header_beats_the_meta_element() -> None:
    body = b"<meta charset=koi8-r>" + "да".encode("cp1251")
    assert decode(body, 'text/html; charset="windows-1251"')[1:] == ("windows-1251", "header")


def test_bytes_that_are_utf8_throughout_are_utf8_whatever_a_single_byte_label_says() -> None:
    assert decode("<meta charset=iso-8859-1><p>naïve café".encode(), None).text.endswith("naïve café")


def test_a_false_utf8_label_does_not_garble_the_page() -> None:
    found = decode(b"<meta charset=utf-8>" + RUSSIAN.encode("cp1251"), "text/html; charset=utf-8")
    assert RUSSIAN in found.text


def test_bytes_undefined_in_windows_1252_become_control_characters_as_in_the_standard() -> None:
    assert decoded(b"a\x81\x93b", "windows-1252") == "a\x81“b"


def test_labels_mean_what_the_encoding_standard_says() -> None:
    assert from_label(" Latin1\n") == from_label("ASCII") == from_label("iso-8859-1") == "windows-1252"
    assert from_label("gb2312") == "gbk"
    assert from_label("nonsense") == ""
    assert len(LABELS) > 200
    assert set(LABELS.values()) == set(CODECS)


@given(st.binary(max_size=400))
def test_decoding_never_fails(body: bytes) -> None:
    found = decode(body, None)
    assert found.charset in CODECS
    prescan(body)


@given(st.text(st.characters(codec="utf-8", exclude_characters="\x1b"), max_size=200))
def test_utf8_text_round_trips(text: str) -> None:
    body = b"<meta charset=utf-8>" + text.encode()
    assert decode(body).text == body.decode()
