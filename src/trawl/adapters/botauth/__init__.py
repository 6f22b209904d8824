"""Who we are, signed: the extra `botauth`."""

from trawl.errors import SettingsError
from trawl.ports import Signer
from trawl.settings import FetchSettings


def open_signer(settings: FetchSettings) -> Signer | None:
    """The signer of requests, if the settings name a key; raises SettingsError if it cannot be used."""
    if not settings.botauth_key_file:
        return None
    try:
        from trawl.adapters.botauth.signing import signer_of  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise SettingsError(
            f"fetch.botauth_key_file needs more than is installed ({error}): pip install 'trawl[botauth]'"
        ) from None
    return signer_of(settings)
