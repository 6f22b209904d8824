"""Ready-made sites, one module each."""

from tests.site.sites.archive import archive
from tests.site.sites.demo import demo
from tests.site.sites.misbehaving import misbehaving
from tests.site.sites.onesite import onesite, onesite_generated
from tests.site.sites.tiny import tiny

__all__ = ["archive", "demo", "misbehaving", "onesite", "onesite_generated", "tiny"]
