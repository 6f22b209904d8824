"""What an element's tag, class, id and role say about its content: the rules of thumb, as flags (pure).

The patterns are whole tokens of class and id (split at white space, hyphens, underscores and camelCase), never
substrings: `nav` must not match `navy`, nor `ads` match `downloads`. Each rule is evidence for the scorer, not a
verdict: an `aside` may hold the article's text. Only controls (`HARD_TAGS`) go without being scored.
"""

import re
from functools import lru_cache
from typing import Final

from trawl.extractor.tree import Node


class Flag:
    """What is known of an element or one of its ancestors: bits of a plain int, since enum arithmetic is slow."""

    NAV: Final = 1 << 0
    HEADER: Final = 1 << 1
    FOOTER: Final = 1 << 2
    ASIDE: Final = 1 << 3
    CONSENT: Final = 1 << 4
    ADS: Final = 1 << 5
    SHARE: Final = 1 << 6
    RELATED: Final = 1 << 7
    COMMENT: Final = 1 << 8
    CONTENT: Final = 1 << 9
    MAIN: Final = 1 << 10
    ARTICLE: Final = 1 << 11
    META: Final = 1 << 12
    FORM: Final = 1 << 13
    HIDDEN: Final = 1 << 14
    POST: Final = 1 << 15
    PRODUCT: Final = 1 << 16
    ITEM: Final = 1 << 17
    LOGIN: Final = 1 << 18
    AUTHOR: Final = 1 << 19
    CODE: Final = 1 << 20
    TABLE: Final = 1 << 21
    LIST: Final = 1 << 22
    QUOTE: Final = 1 << 23
    HEADING: Final = 1 << 24
    MODAL: Final = 1 << 25


HARD_TAGS: Final = frozenset(
    ["input", "select", "textarea", "button", "option", "optgroup", "audio", "video", "map", "dialog", "menuitem"]
)

_TAG_FLAGS: Final = {
    "nav": Flag.NAV,
    "menu": Flag.NAV,
    "header": Flag.HEADER,
    "footer": Flag.FOOTER,
    "aside": Flag.ASIDE,
    "form": Flag.FORM,
    "fieldset": Flag.FORM,
    "main": Flag.MAIN,
    "article": Flag.ARTICLE,
    "pre": Flag.CODE,
    "table": Flag.TABLE,
    "ul": Flag.LIST,
    "ol": Flag.LIST,
    "dl": Flag.LIST,
    "blockquote": Flag.QUOTE,
}
_ROLE_FLAGS: Final = {
    "navigation": Flag.NAV,
    "menu": Flag.NAV,
    "menubar": Flag.NAV,
    "banner": Flag.HEADER,
    "contentinfo": Flag.FOOTER,
    "complementary": Flag.ASIDE,
    "search": Flag.FORM,
    "main": Flag.MAIN,
    "article": Flag.ARTICLE,
    "dialog": Flag.MODAL,
    "alertdialog": Flag.MODAL,
    "alert": Flag.MODAL,
}
_TOKENS: Final = {
    Flag.NAV: "nav navbar navigation menu menus submenu megamenu breadcrumb breadcrumbs crumbs pagination pager paging "
    "toc tabs topbar toolbar skip sitemap navlinks hamburger dropdown",
    Flag.HEADER: "header masthead hero heading topper",
    Flag.FOOTER: "footer foot copyright colophon bottom legal disclaimer",
    Flag.ASIDE: "sidebar side aside rail secondary widget widgets complementary",
    Flag.CONSENT: "cookie cookies consent gdpr ccpa onetrust cmp",
    Flag.MODAL: "modal popup overlay lightbox offcanvas drawer tooltip toast banner notice alert dialog interstitial",
    Flag.ADS: "ad ads advert advertisement advertising adsense sponsor sponsored promo promotion promoted promobox "
    "dfp gpt taboola outbrain cta newsletter subscribe subscription signup donate donation upsell",
    Flag.SHARE: "share sharing shares social socials sharedaddy addtoany addthis follow facebook twitter whatsapp "
    "pinterest linkedin like likes",
    Flag.RELATED: "related recommended recommendations recommendation recommend similar more trending popular latest "
    "recent readmore further also suggestions suggested next prev previous upnext teaser teasers carousel",
    Flag.COMMENT: "comment comments commentlist respond disqus replies reviews review",
    Flag.CONTENT: "content body text main entry article story story post prose markdown richtext rte copy description "
    "page articlebody wysiwyg document docs details hentry",
    Flag.META: "meta byline date time timestamp published author tags tag category categories label labels info "
    "posted kicker eyebrow credit credits caption views",
    Flag.LOGIN: "login signin register account cart basket checkout wishlist search filter filters facet facets sort "
    "sorting rating stars button btn",
    Flag.POST: "post message reply answer question topic thread discussion postbody posts messages",
    Flag.PRODUCT: "product price sku spec specs specification specifications features variant offer buybox pdp",
    Flag.ITEM: "item items card cards tile grid list listing result results entry row loop",
    Flag.AUTHOR: "bio avatar profile user username authors contributor",
}
_TOKEN_FLAGS: Final = {token: flag for flag, tokens in reversed(_TOKENS.items()) for token in tokens.split()}
_SPLIT: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_HIDDEN_STYLE: Final = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden")


def flags(node: Node) -> int:
    """The evidence in one element itself; cheap, since class strings repeat and are remembered."""
    attrs = node.attrs
    found = _TAG_FLAGS.get(node.tag, 0)
    if not attrs:
        return found
    names = attrs.get("class")
    if names:
        found |= name_flags(names[:400])
    names = attrs.get("id")
    if names:
        found |= name_flags(names[:100])
    role = attrs.get("role")
    if role:
        found |= _ROLE_FLAGS.get(role, 0)
    if "itemprop" in attrs and attrs["itemprop"] in _ITEMPROP_CONTENT:
        found |= Flag.ARTICLE
    return found


_ITEMPROP_CONTENT: Final = frozenset({"articleBody", "text", "description", "reviewBody"})


@lru_cache(maxsize=32_768)
def name_flags(names: str) -> int:
    """The evidence in a class or id attribute."""
    found = 0
    for token in _SPLIT.findall(names):
        found |= _TOKEN_FLAGS.get(token.lower(), 0)
    return found


def is_seen(node: Node) -> bool:
    """Whether a reader sees the element: not if its author hides it, or from assistive technology (decoration)."""
    attrs = node.attrs
    if not attrs:
        return node.tag != "noscript"
    if "hidden" in attrs or attrs.get("aria-hidden") == "true" or node.tag == "noscript":
        return False
    style = attrs.get("style")
    return not style or _HIDDEN_STYLE.search(style) is None


_CONSENT_TEXT: Final = re.compile(
    r"(we|site|website) uses? cookies|uses cookies|accept (all )?cookies|cookie (policy|settings|preferences|consent)|"
    r"(manage|your) (cookie|privacy) (preferences|settings|choices)|consent to (the use|our use|cookies)",
    re.IGNORECASE,
)
_CODE_LEAK: Final = re.compile(
    r"\b(var|let|const)\s+\w+\s*=|\$\(function|\bfunction\s*\w*\([^()]*+\)\s*\{|[.#][\w-]+\s*\{[^{}:]*+:[^{}]*+\}|"
    r"(background|margin|padding|display)\s*:\s*[\w#-]+\s*;|window\.\w+\s*=|document\.(getElementById|write)"
)
"""No repetition reads past the next opening of its kind: from each of many openings to the end would be quadratic."""


def is_consent_text(text: str) -> bool:
    """Whether a short text is a cookie or consent notice; a long one only speaks of cookies."""
    return len(text) < 1_000 and "ook" in text and _CONSENT_TEXT.search(text) is not None


def is_code_leak(text: str) -> bool:
    """Whether a text outside code is script or style that leaked into the page."""
    return ("{" in text or "=" in text or ";" in text) and _CODE_LEAK.search(text) is not None


FLAG_BITS: Final = max(value.bit_length() for name, value in vars(Flag).items() if name.isupper())
"""How many kinds of evidence there are."""
