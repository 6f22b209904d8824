"""Which legacy encoding bytes without a declaration are in, by what they decode to (pure).

Each candidate decodes a sample; the score is the share of its non-ASCII characters that are frequent in the languages
written with it, minus what those languages hardly contain. Frequent characters are those of the standards' first
levels (kana, KS X 1001 syllables, GB 2312 and Big5 level 1) and the most used letters of each alphabet.
"""

import re
from typing import Final

_SAMPLE_BYTES: Final = 40_000
_TAGS: Final = re.compile(rb"<(?:script|style)\b.*?</(?:script|style)>|<[^>]*>", re.DOTALL | re.IGNORECASE)
_BY_LANGUAGE: Final = {
    "windows-1250": "cs hu pl sk sl hr ro bs sq",
    "windows-1251": "ru uk bg mk be sr kk ky mn tg",
    "windows-1253": "el",
    "windows-1254": "tr az ku",
    "windows-1255": "he iw yi",
    "windows-1256": "ar fa ur ps",
    "windows-1257": "lt lv et",
    "windows-1258": "vi",
    "windows-874": "th",
}
_DEFAULTS: Final = {language: name for name, languages in _BY_LANGUAGE.items() for language in languages.split()}
_ALPHABETS: Final = {
    "windows-1251": ("cp1251", "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфіїєўљњћђ"),
    "koi8-r": ("koi8_r", "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэф"),
    "iso-8859-5": ("iso8859_5", "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэф"),
    "ibm866": ("cp866", "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэф"),
    "windows-1253": ("cp1253", "αοιετσνηυρπκμλςωγδάέίόήώύθχφβξζψ"),
    "windows-1255": ("cp1255", "יוהלאתרבשמנםדפקעחצסןטגכזךףץ"),
    "windows-1256": ("cp1256", "اليمنوترسبعدهفكقحجشصطخذءزثضغظىةپچژگکی"),
    "windows-874": ("cp874", "านรอกเงมยลวดทสตะปบคหแจพชขใไโซถผธฟณศษภญุูึี่้ัิ์็ำ"),
}
_JAPANESE_SIGNS: Final = "「」\uff01\uff1f\uff08\uff09\uff1a\uff5e"
_EAST: Final = {
    "shift_jis": "cp932",
    "euc-jp": "euc_jp",
    "gbk": "gb18030",
    "big5": "big5hkscs",
    "euc-kr": "cp949",
}


def guess(body: bytes, language: str = "") -> str:
    """The name of the most likely encoding; windows-1252 where nothing speaks for another."""
    sample = _sample(body)
    if not sample:
        return "iso-2022-jp" if b"\x1b$B" in body or b"\x1b$@" in body else "windows-1252"
    east, score = max(((name, _east_score(sample, name)) for name in _EAST), key=lambda item: item[1])
    alphabet, share = max(((name, _alphabet_score(sample, name)) for name in _ALPHABETS), key=lambda item: item[1])
    if score > max(0.5, share):
        return east
    if share > 0.6:
        return alphabet
    return _DEFAULTS.get(language) or _central_european(sample)


def _sample(body: bytes) -> bytes:
    """The words with bytes above 127, tags taken out, so that ASCII neither costs nor counts."""
    text = _TAGS.sub(b" ", body[: 5 * _SAMPLE_BYTES])
    lines = [line for line in text.splitlines() if not line.isascii()]
    return b"\n".join(lines)[:_SAMPLE_BYTES]


def _east_score(sample: bytes, name: str) -> float:
    text = sample.decode(_EAST[name], "replace")
    good = bad = 0.0
    for char in text:
        if char <= "\x7f":
            continue
        worth = _WORTH[name](char)
        good += max(worth, 0.0)
        bad -= min(worth, 0.0)
    wide = sum(char > "\x7f" for char in text)
    return (good - bad) / wide if wide else 0.0


def _japanese(char: str) -> float:
    if "\u3041" <= char <= "\u30fe" or "\u3000" <= char <= "\u3002" or char in _JAPANESE_SIGNS:
        return 1.3
    if "\u4e00" <= char <= "\u9fff":
        return 0.6
    if char == "\ufffd" or "\uff61" <= char <= "\uff9f" or "\ue000" <= char <= "\uf8ff":
        return -2.0
    return 0.0


def _chinese_gb(char: str) -> float:
    if char == "\ufffd" or "\ue000" <= char <= "\uf8ff":
        return -2.0
    try:
        lead = char.encode("gb2312")[0]
    except UnicodeEncodeError:
        return -0.4
    if 0xB0 <= lead <= 0xD7:
        return 1.0
    return 0.8 if lead in (0xA1, 0xA3) else 0.2 if lead >= 0xD8 else -0.3


def _chinese_big5(char: str) -> float:
    if char == "\ufffd" or "\ue000" <= char <= "\uf8ff":
        return -2.0
    try:
        lead = char.encode("big5")[0]
    except UnicodeEncodeError:
        return -0.6
    return 1.0 if 0xA4 <= lead <= 0xC6 else 0.8 if lead in (0xA1, 0xA2) else 0.1


def _korean(char: str) -> float:
    if "\uac00" <= char <= "\ud7a3":
        try:
            char.encode("euc_kr")
        except UnicodeEncodeError:
            return -0.8
        return 1.1
    if char == "\ufffd" or "\ue000" <= char <= "\uf8ff":
        return -2.0
    return 0.1


_WORTH: Final = {
    "shift_jis": _japanese,
    "euc-jp": _japanese,
    "gbk": _chinese_gb,
    "big5": _chinese_big5,
    "euc-kr": _korean,
}


def _alphabet_score(sample: bytes, name: str) -> float:
    """The share of non-ASCII characters that are small letters of the alphabet, the frequent half counting more."""
    codec, letters = _ALPHABETS[name]
    text = sample.decode(codec, "replace")
    frequent, rest = letters[:12], frozenset(letters)
    wide = [char for char in text if char > "\x7f"]
    runs = len(re.findall(r"[^\x00-\x7f]{3,}", text))
    if not wide or runs * 8 < len(wide) * 0.25:
        return 0.0  # letters of a western language stand alone among ASCII ones
    good = sum(
        1.2 if char in frequent else 0.7 if char in rest else 0.3 if char.lower() in rest else -1.0 for char in wide
    )
    return good / len(wide)


_CENTRAL: Final = re.compile(
    rb"[A-Za-z\x80-\xff][\x9a\x9c-\x9f\xb3\xb9\xbe\xbf]|[\x9a\x9c-\x9f\xb3\xb9\xbe\xbf][A-Za-z]"
)


def _central_european(sample: bytes) -> str:
    """windows-1250 if bytes that are its letters but mostly signs in windows-1252 stand inside words."""
    found = len(_CENTRAL.findall(sample))
    wide = sum(byte > 0x7F for byte in sample)
    return "windows-1250" if found >= 2 and found > 0.12 * wide else "windows-1252"
