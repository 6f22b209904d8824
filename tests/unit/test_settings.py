"""Settings: where they come from, and what cannot be one."""

import dataclasses
from dataclasses import replace

import pytest

from trawl.errors import SettingsError
from trawl.settings import PolitenessSettings, Settings, load, validate
from trawl.settings.groups import POSITIVE

ABOVE_ZERO = [(group, name) for group, names in POSITIVE.items() for name in names]


def test_the_environment_wins_over_the_file_and_the_file_over_the_default() -> None:
    document = {"fetch": {"body_bytes_max": 1, "wire_bytes_max": 2}, "url": {"drop_parameters": ["a"]}}
    found = load(document, {"TRAWL_FETCH_WIRE_BYTES_MAX": "3", "TRAWL_URL_SORT_QUERY": "yes"})
    assert (found.fetch.body_bytes_max, found.fetch.wire_bytes_max) == (1, 3)
    assert (found.url.drop_parameters, found.url.sort_query) == (("a",), True)
    assert found.fetch.header_bytes_max == Settings().fetch.header_bytes_max


@pytest.mark.parametrize(("group", "name"), ABOVE_ZERO)
def test_zero_is_refused_where_it_would_stop_or_unbind_everything(group: str, name: str) -> None:
    assert name in {field.name for field in dataclasses.fields(getattr(Settings(), group))}
    with pytest.raises(SettingsError, match=rf"{group}\.{name} = 0"):
        load({group: {name: 0}}, {})
    variable = f"TRAWL_{group}_{name}".upper()
    with pytest.raises(SettingsError, match=f"{variable} says that {group}.{name} = 0"):
        load({}, {variable: "0"})


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        ({"TRAWL_FETCH_BODY_BYTES_MAX": "many"}, "it takes int"),
        ({"TRAWL_FETCH_BODY_BYTES_MAX": "-1"}, "not negative"),
        ({"TRAWL_POLITENESS_DELAY_SECONDS": "inf"}, "not negative"),
        ({"TRAWL_POLITENESS_DELAY_SECONDS": "nan"}, "not negative"),
        ({"TRAWL_URL_SORT_QUERY": "maybe"}, "it takes bool"),
        ({"TRAWL_URL_SORT_QUERIES": "yes"}, "did you mean TRAWL_URL_SORT_QUERY"),
    ],
)
def test_a_variable_that_cannot_be_used_is_named(variables: dict[str, str], told: str) -> None:
    with pytest.raises(SettingsError, match=told) as raised:
        load({}, variables)
    assert next(iter(variables)) in str(raised.value)


def test_settings_made_in_python_are_checked_as_well() -> None:
    assert validate(Settings()) == Settings()
    with pytest.raises(SettingsError, match=r"politeness\.delay_seconds"):
        validate(replace(Settings(), politeness=PolitenessSettings(delay_seconds=-1)))
