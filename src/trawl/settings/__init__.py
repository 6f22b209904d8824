"""Every limit and policy of a crawl, each with its unit last, its default and its meaning.

A setting is read, in rising order of precedence, from its default, a TOML file (`[fetch] body_bytes_max = 1000000`),
a variable of the environment (`TRAWL_FETCH_BODY_BYTES_MAX=1000000`) and the command line. A list in a variable is
parted by commas, or by line breaks if it has any.
"""

from typing import Final

from trawl.settings.crawling import DedupSettings, EmbeddedSettings, ExtractSettings, FrontierSettings, IndexSettings
from trawl.settings.fetching import (
    DEFAULT_USER_AGENT,
    ComplianceSettings,
    FetchSettings,
    PolitenessSettings,
    RobotsSettings,
    UrlSettings,
)
from trawl.settings.groups import Settings
from trawl.settings.reading import load, read, validate
from trawl.settings.rendering import BrowserSettings
from trawl.settings.serving import (
    BlobSettings,
    EmbedSettings,
    KafkaSettings,
    OpenSearchSettings,
    RedisSettings,
    ServiceSettings,
)

FILE_VARIABLE: Final = "TRAWL_SETTINGS"
"""The variable that names the TOML file."""

__all__ = [
    "DEFAULT_USER_AGENT",
    "FILE_VARIABLE",
    "BlobSettings",
    "BrowserSettings",
    "ComplianceSettings",
    "DedupSettings",
    "EmbedSettings",
    "EmbeddedSettings",
    "ExtractSettings",
    "FetchSettings",
    "FrontierSettings",
    "IndexSettings",
    "KafkaSettings",
    "OpenSearchSettings",
    "PolitenessSettings",
    "RedisSettings",
    "RobotsSettings",
    "ServiceSettings",
    "Settings",
    "UrlSettings",
    "load",
    "read",
    "validate",
]
