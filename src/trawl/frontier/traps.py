"""Crawler traps: URLs without end, recognised by their shape and by what came back (pure).

`static_trap` looks at one URL alone: paths that grow, segments that repeat, queries out of hand. `template_trap` looks
at what is known of the URL's template (`trawl.url.template`) on its host: a budget for calendars, facets and session
ids, which look harmless one by one, and feedback from content, since a trap keeps answering with what was seen before.
"""

import re
from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from trawl.ports import TemplateCounts
from trawl.settings import FrontierSettings
from trawl.url import URL_CHARS_MAX, is_pattern, repeats

CLOSE_RESULTS_MIN: Final = 50
"""Results of a template before it may be closed for its duplicates."""
THROTTLE_ONE_IN: Final = 10
"""Of a throttled template one URL in so many is admitted, always the same ones."""

_CALENDAR_WORD: Final = re.compile(r"(?<![a-z])(?:calendar|calendario|calendrier|kalender|agenda|events?)(?![a-z])")
_CALENDAR_PARAMETERS: Final = frozenset({"cal_month", "cal_year", "date", "day", "ical", "month", "week", "year"})


class Trap(StrEnum):
    """Why a URL is taken for a trap; the values are the reasons of refusals."""

    URL_TOO_LONG = "url_too_long"
    PATH_TOO_DEEP = "path_too_deep"
    REPEATED_SEGMENTS = "repeated_segments"
    QUERY_TOO_LONG = "query_too_long"
    TOO_MANY_PARAMETERS = "too_many_parameters"
    TEMPLATE_BUDGET = "template_budget"
    TEMPLATE_DUPLICATES = "template_duplicates"


class TemplateState(StrEnum):
    """What its duplicates have made of a template."""

    OPEN = "open"
    THROTTLED = "throttled"
    CLOSED = "closed"


def static_trap(url: str, limits: FrontierSettings, url_chars_max: int = URL_CHARS_MAX) -> Trap | None:
    """The reason why a canonical URL is a trap by its shape alone, or none."""
    if len(url) > url_chars_max:
        return Trap.URL_TOO_LONG
    location, _, query = url.partition("?")
    segments = location.split("/")[3:]
    if not segments[-1]:
        segments.pop()
    if len(segments) > limits.path_segments_max:
        return Trap.PATH_TOO_DEEP
    if len(segments) > limits.segment_repeats_max and _repeats_too_often(segments, limits.segment_repeats_max):
        return Trap.REPEATED_SEGMENTS
    if len(query) > limits.query_chars_max:
        return Trap.QUERY_TOO_LONG
    if query and query.count("&") >= limits.query_parameters_max:
        return Trap.TOO_MANY_PARAMETERS
    return None


def template_trap(template: str, counts: TemplateCounts, request_key: int, limits: FrontierSettings) -> Trap | None:
    """The reason why one more URL of a template is refused, or none.

    A template that stands for one URL is never refused. Which URLs pass a throttle depends on their key alone, so that
    a replay decides the same.
    """
    if not is_pattern(template):
        return None
    state = template_state(counts, limits)
    if state is TemplateState.CLOSED or (state is TemplateState.THROTTLED and request_key % THROTTLE_ONE_IN):
        return Trap.TEMPLATE_DUPLICATES
    return Trap.TEMPLATE_BUDGET if counts.admitted >= template_budget(template, limits) else None


def template_state(counts: TemplateCounts, limits: FrontierSettings) -> TemplateState:
    """Open, throttled or closed, by the share of the template's results that were duplicates."""
    if counts.results < max(1, limits.template_results_min):
        return TemplateState.OPEN
    share = counts.duplicates / counts.results
    if counts.results >= CLOSE_RESULTS_MIN and share >= limits.template_close_share:
        return TemplateState.CLOSED
    return TemplateState.THROTTLED if share >= limits.template_throttle_share else TemplateState.OPEN


def template_budget(template: str, limits: FrontierSettings) -> int:
    """URLs admitted of a template: the small budget for facets (two or more parameters) and calendars."""
    path, _, query = template.partition("?")
    parameters = query[1:-1].split(",") if query else []
    endless = len(parameters) > 1 or parameters == ["*"] or _is_calendar(path, parameters)
    return limits.facet_template_urls_max if endless else limits.template_urls_max


def _is_calendar(path: str, parameters: Sequence[str]) -> bool:
    """A page for every day there ever was: a calendar's name beside a date, or a parameter that is one."""
    if not _CALENDAR_PARAMETERS.isdisjoint(name.lower() for name in parameters):
        return True
    dated = "{date}" in path or "{n}/{n}" in path
    return dated and _CALENDAR_WORD.search(path.partition("/")[2].lower()) is not None


def _repeats_too_often(segments: Sequence[str], repeats_max: int) -> bool:
    """Whether a run of segments repeats, or a word comes back between others, as links into a folder make it."""
    often = [name for name, count in Counter(segments).items() if count > repeats_max]
    # Numbers may come back, /1/2/1/3; they may not repeat in a row.
    return not all(name.isdigit() for name in often) or (bool(often) and repeats(segments) > repeats_max)
