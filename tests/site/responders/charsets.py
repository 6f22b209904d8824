"""Pages in every encoding, declared well, badly or not at all."""

from dataclasses import dataclass

from tests.site.message import Reply

GERMAN = (
    "Die Größe des Gefäßes überraschte die Bäckerin: fünf Kilo süßer Grieß paßten hinein. "
    "Über Nacht quoll der Brei, und am nächsten Morgen füllte er drei Schüsseln."
)
RUSSIAN = (
    "Ранним утром рыбаки вышли в море, и туман скрыл от них берег. "
    "К полудню ветер переменился, и лодки вернулись домой с богатым уловом."
)
JAPANESE = (
    "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。"
    "何でも薄暗いじめじめした所でニャーニャー泣いていた事だけは記憶している。"
)
CHINESE = "清晨的市场里挤满了买菜的人,卖鱼的老人大声吆喝着。孩子们在巷子里追逐,空气中弥漫着新鲜面包和茶叶的香味。"
FRENCH = "L’été dernier, la forêt brûlait ; « où aller ? » demandait l’élève à sa sœur aînée, près du château."


@dataclass(frozen=True, slots=True)
class Charset:
    """A page in some encoding and the text that a good reader finds in it."""

    text: str
    encoding: str
    content_type: str | None = "text/html"
    head: str = ""
    before: bytes = b""
    """A byte order mark or an XML declaration."""
    title: str = "Page"

    @property
    def page(self) -> Reply:
        head = f"<head>{self.head}<title>{self.title}</title></head>"
        markup = f"<!doctype html><html>{head}<body><p>{self.text}</p></body></html>"
        return Reply(body=self.before + markup.encode(self.encoding), content_type=self.content_type)


_META = '<meta charset="{}">'.format
_HTTP_EQUIV = '<meta http-equiv="Content-Type" content="text/html; charset={}">'.format
_LONG_COMMENT = "<!-- " + "padding " * 160 + "-->"

CASES: dict[str, Charset] = {
    "header-utf-8": Charset(RUSSIAN, "utf-8", "text/html; charset=utf-8"),
    "header-latin-1": Charset(GERMAN, "latin-1", "text/html; charset=ISO-8859-1"),
    "header-quoted": Charset(GERMAN, "latin-1", 'text/html; charset="iso-8859-1"'),
    "header-windows-1251": Charset(RUSSIAN, "cp1251", "text/html; charset=windows-1251"),
    "header-single-quotes-and-case": Charset(RUSSIAN, "koi8-r", "Text/HTML;Charset='KOI8-R'"),
    "header-beats-meta": Charset(RUSSIAN, "utf-8", "text/html; charset=utf-8", _META("windows-1251")),
    "header-unknown-label": Charset(GERMAN, "latin-1", "text/html; charset=x-made-up", _META("iso-8859-1")),
    "latin-1-is-windows-1252": Charset(FRENCH, "cp1252", "text/html; charset=iso-8859-1"),
    "meta-utf-8": Charset(RUSSIAN, "utf-8", head=_META("utf-8")),
    "meta-latin-1": Charset(GERMAN, "latin-1", head=_META("iso-8859-1")),
    "meta-gbk": Charset(CHINESE, "gbk", head=_HTTP_EQUIV("gb2312")),
    "meta-broken-gbk": Charset(CHINESE, "gbk", head="<meta httpequiv=ContentType content=text/html; charset=gbk>"),
    "meta-euc-jp": Charset(JAPANESE, "euc-jp", head=_HTTP_EQUIV("EUC-JP")),
    "meta-beyond-1024-bytes": Charset(RUSSIAN, "cp1251", head=_LONG_COMMENT + _META("windows-1251")),
    "meta-utf-16-means-utf-8": Charset(RUSSIAN, "utf-8", head=_META("utf-16")),
    "xml-declaration": Charset(
        GERMAN, "latin-1", "application/xhtml+xml", before=b'<?xml version="1.0" encoding="iso-8859-1"?>\n'
    ),
    "undeclared-utf-8": Charset(RUSSIAN, "utf-8"),
    "undeclared-shift-jis": Charset(JAPANESE, "shift_jis"),
    "undeclared-windows-1251": Charset(RUSSIAN, "cp1251"),
    "undeclared-latin-1": Charset(GERMAN, "latin-1"),
    "undeclared-type": Charset(RUSSIAN, "utf-8", None),
    "utf-8-bom": Charset(RUSSIAN, "utf-8", before=b"\xef\xbb\xbf", head=_META("iso-8859-1")),
    "utf-16-le-bom": Charset(RUSSIAN, "utf-16-le", before=b"\xff\xfe"),
    "utf-16-be-bom": Charset(JAPANESE, "utf-16-be", before=b"\xfe\xff"),
    "bom-beats-header": Charset(RUSSIAN, "utf-8", "text/html; charset=windows-1251", before=b"\xef\xbb\xbf"),
    "mislabelled-utf-8-as-latin-1": Charset(RUSSIAN, "utf-8", "text/html; charset=iso-8859-1", _META("utf-8")),
}
"""By name. Of `mislabelled-…` the standard says the header wins, though `text` is what its author meant."""
