"""What kind of page this is, by structured data, the URL's shape and the tree's own counts (pure)."""

import re
from typing import Any, Final

from trawl.kinds import PageType

_BY_CLASS: Final = {
    PageType.PRODUCT: "Product ProductGroup IndividualProduct Offer Vehicle",
    PageType.FORUM: "DiscussionForumPosting QAPage Question Conversation",
    PageType.ARTICLE: "Article NewsArticle BlogPosting Report ScholarlyArticle ReportageNewsArticle "
    "OpinionNewsArticle Recipe Review AnalysisNewsArticle LiveBlogPosting",
    PageType.DOCUMENTATION: "TechArticle APIReference",
    PageType.COLLECTION: "CollectionPage OfferCatalog ProductCollection",
    PageType.LISTING: "ItemList SearchResultsPage Blog",
    PageType.SERVICE: "Service ProfessionalService LocalBusiness FinancialProduct Course "
    "EducationalOccupationalProgram",
}
_CLASSES: Final = {f"schema.org/{name}": kind for kind, names in _BY_CLASS.items() for name in names.split()}
_BY_URL: Final = {
    PageType.FORUM: r"/(?:forums?|threads?|topics?|t|discussions?|questions|viewtopic|showthread|community|comments)"
    r"[/.?-]",
    PageType.DOCUMENTATION: r"//(?:docs?|developers?|learn|help|manual|wiki|api)\.|"
    r"/(?:docs?|documentation|reference|manual|guide|guides|api|tutorials?|wiki|readthedocs|man)/",
    PageType.PRODUCT: r"/(?:products?|dp|item|itm|p|shop/p|buy)/[^/]+/?$|/products/[^/?]+",
    PageType.COLLECTION: r"/(?:collections?|categor(?:y|ies)|c|shop|store|department|browse|catalog)(?:/|$)",
    PageType.LISTING: r"/(?:tag|tags|topics?|archives?|search|blog|news|jobs|events|listing|directory)/?$|"
    r"[?&](?:page|q|s)=",
    PageType.ARTICLE: r"/\d{4}/\d{1,2}/|/(?:blog|news|articles?|posts?|story|stories|opinion)/[^/]+",
    PageType.SERVICE: r"/(?:services?|solutions?|pricing|programs?|courses?|about)(?:/|$)",
}
_URL_PATTERNS: Final = [(kind, re.compile(pattern)) for kind, pattern in _BY_URL.items()]


def page_type(url: str, data: dict[str, Any], facts: dict[str, float]) -> tuple[PageType, float]:
    """The type and a confidence from 0 to 1.

    `facts` are counts of the content: words, paragraphs of running text, items (repeated siblings), code blocks, posts.
    """
    votes = _votes(url, data)
    _vote_content(votes, facts)
    best = max(votes, key=votes.__getitem__)
    total = sum(votes.values())
    if votes[best] < 0.8:
        return PageType.OTHER, 0.3
    return best, round(votes[best] / total, 3)


def hints(url: str, data: dict[str, Any]) -> list[float]:
    """What URL and structured data say of each page type, as eight numbers for the scorer."""
    return [min(value, 3.0) for value in _votes(url, data).values()]


def _votes(url: str, data: dict[str, Any]) -> dict[PageType, float]:
    votes = dict.fromkeys(PageType, 0.0)
    for name in data:
        kind = _CLASSES.get(name)
        if kind is not None:
            votes[kind] += 2.0
    if isinstance(data.get("opengraph"), dict):
        shared = str(data["opengraph"].get("og:type", ""))
        if shared.startswith("article"):
            votes[PageType.ARTICLE] += 0.8
        elif shared.startswith("product"):
            votes[PageType.PRODUCT] += 2.0
    lowered = url.lower()
    for kind, pattern in _URL_PATTERNS:
        if pattern.search(lowered):
            votes[kind] += 1.5
    return votes


def _vote_content(votes: dict[PageType, float], facts: dict[str, float]) -> None:
    if facts.get("code", 0) >= 2:
        votes[PageType.DOCUMENTATION] += 1.0
    if facts.get("posts", 0) >= 3:
        votes[PageType.FORUM] += 1.2
    if facts.get("paragraphs", 0) >= 5:
        votes[PageType.ARTICLE] += 1.0
    if facts.get("items", 0) >= 8 and facts.get("paragraphs", 0) < 8:
        votes[PageType.LISTING] += 0.9
