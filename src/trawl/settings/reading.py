"""Settings from a file and the environment, checked."""

import tomllib
from collections.abc import Mapping
from dataclasses import fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from trawl.errors import SettingsError
from trawl.settings.groups import POSITIVE, Settings


def read(path: Path | None) -> dict[str, Any]:
    """A file of settings, parsed, for `load`; empty without a path. Raises SettingsError."""
    if path is None:
        return {}
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SettingsError(f"there is no settings file {path}") from None
    except (OSError, ValueError) as error:
        raise SettingsError(f"the settings file {path} cannot be read: {error}") from error


def load(document: Mapping[str, Any], environ: Mapping[str, str]) -> Settings:
    """Settings from a parsed TOML document and the environment; raises SettingsError naming what is wrong."""
    groups = {group.name: group for group in fields(Settings)}
    for name, value in document.items():
        if name not in groups or not isinstance(value, Mapping):
            raise SettingsError(f"there is no group of settings [{name}]; the groups are {', '.join(groups)}")
    defaults = Settings()
    _all_known(groups, environ)
    return Settings(**{name: _group(getattr(defaults, name), name, document.get(name, {}), environ) for name in groups})


def validate(settings: Settings) -> Settings:
    """The settings, if each number in them can be used; raises SettingsError naming the first that cannot."""
    for group in fields(settings):
        values = getattr(settings, group.name)
        for name, hint in get_type_hints(type(values)).items():
            _checked(f"{group.name}.{name}", getattr(values, name), hint)
    return settings


def _all_known(groups: Mapping[str, Any], environ: Mapping[str, str]) -> None:
    """Raise SettingsError for a variable that looks like a setting and is none: a slip of the pen must not pass."""
    known = {
        f"TRAWL_{group}_{name}".upper(): f"TRAWL_{group}_".upper()
        for group, found in groups.items()
        for name in get_type_hints(found.default_factory)
    }
    prefixes = tuple(set(known.values()))
    for variable in environ:
        if variable.startswith(prefixes) and variable not in known:
            close = get_close_matches(variable, known, n=1)
            hint = f"did you mean {close[0]}?" if close else "see docs/settings.md"
            raise SettingsError(f"the variable {variable} names no setting; {hint}")


def _group(defaults: Any, group: str, values: Mapping[str, Any], environ: Mapping[str, str]) -> Any:
    hints = get_type_hints(type(defaults))
    for name in values:
        if name not in hints:
            raise SettingsError(f"there is no setting {group}.{name}; see docs/settings.md")
    changes = {name: _checked(f"{group}.{name}", value, hints[name]) for name, value in values.items()}
    for name, hint in hints.items():
        variable = f"TRAWL_{group}_{name}".upper()
        if variable in environ:
            try:
                changes[name] = _parsed(f"{group}.{name}", environ[variable], hint)
            except SettingsError as error:
                raise SettingsError(f"the variable {variable} says that {error}") from None
    return replace(defaults, **changes)


def _checked(name: str, value: Any, hint: Any) -> Any:
    if get_origin(hint) is tuple:
        if isinstance(value, list | tuple) and all(isinstance(item, get_args(hint)[0]) for item in value):
            return tuple(value)
    elif hint is float and isinstance(value, int | float) and not isinstance(value, bool):
        return _in_range(name, float(value))
    elif hint is int and isinstance(value, int) and not isinstance(value, bool):
        return _in_range(name, value)
    elif hint in {str, bool} and isinstance(value, hint):
        return value
    wanted = "a list of texts" if get_origin(hint) is tuple else hint.__name__
    raise SettingsError(f"{name} = {value!r} cannot be used; it takes {wanted}")


def _in_range(name: str, value: float) -> float:
    group, _, setting = name.partition(".")
    if not 0 <= value < float("inf"):
        raise SettingsError(f"{name} = {value} cannot be used; it takes a number that is not negative")
    if not value and setting in POSITIVE.get(group, ()):
        raise SettingsError(f"{name} = {value} cannot be used; it takes a number above zero")
    return value


def _parsed(name: str, text: str, hint: Any) -> Any:
    if get_origin(hint) is tuple:
        return tuple(part.strip() for part in text.split("\n" if "\n" in text else ",") if part.strip())
    if hint is bool:
        if text.lower() in {"1", "true", "yes", "on"}:
            return True
        if text.lower() in {"0", "false", "no", "off"}:
            return False
    try:
        value = hint(text) if hint is not bool else text
    except ValueError:
        value = text
    return _checked(name, value, hint)
