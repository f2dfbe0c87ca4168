"""The configuration file: TOML with the names of the flags. An unknown key is refused with the nearest name."""

from __future__ import annotations

import difflib
import json
import tomllib
from typing import Any

from dkl.cli.families import options_of_family
from dkl.cli.options import BY_NAME, FAMILY, MODEL, SINGLE, check_value

HEAD = """# Options of `dkl fit --config THIS_FILE DATA MODEL`. Flags override this file.
# A commented line shows the default, or an example if there is none.
"""


def read_config(path: str) -> dict[str, Any]:
    """The options of a file."""
    try:
        found = tomllib.loads(_read(path))
    except FileNotFoundError:
        raise ValueError(
            f"the configuration {path!r} does not exist; dkl fit --write-config {path} makes one"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"the configuration {path!r} is not TOML: {error}") from None
    except RecursionError:
        raise ValueError(f"the configuration {path!r} is nested too deep; use numbers and words as values") from None
    options = {}
    for key, value in found.items():
        name = key.replace("-", "_")
        if name not in BY_NAME:
            near = difflib.get_close_matches(name, BY_NAME, n=1, cutoff=0.4)
            hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(BY_NAME)}"
            raise ValueError(f"the configuration {path!r} has the key {key!r}, which is unknown; {hint}")
        options[name] = check_value(name, value)
    return options


def _read(path: str) -> str:
    """The text of a file, or of one at a URL."""
    from dkl.sources.files import filesystem
    from dkl.store.folder import is_url, reaching

    if not is_url(path):
        with open(path, "rb") as file:
            return file.read().decode()
    with reaching(path):
        fs, name = filesystem(path)
        fs.invalidate_cache()
        found = fs.cat_file(name)
    return bytes(found).decode()


def merge(flags: dict[str, Any], config: str | None) -> dict[str, Any]:
    """Flags, then the file, then defaults of the family that `model` names, then those of the table."""
    filed = read_config(config) if config else {}
    given = {**filed, **{name: value for name, value in flags.items() if value is not None}}
    known = {option.name: option for option in MODEL}
    if (family := given.get(FAMILY.name, SINGLE)) != SINGLE:
        known |= options_of_family(family)
    return {name: given.get(name, known[name].default) for name in BY_NAME}


def write_config(flags: dict[str, Any]) -> str:
    """A commented file with the flags that were given, of the family that they name."""
    family = flags.get(FAMILY.name, SINGLE)
    lines, known = [HEAD], options_of_family(family)
    for name in set(flags) - set(known):
        raise ValueError(f"{name}={flags[name]!r} is no option of model={family!r}; leave it out")
    for name, option in known.items():
        value = flags.get(name)
        lines.append(f"# {option.about}")
        if option.choices and len(option.choices) > 3:
            lines.append(f"# One of {', '.join(option.choices)}.")
        if value is not None:
            lines.append(f"{name} = {_toml(value)}\n")
        else:
            shown = option.default if option.default is not None else option.sample
            lines.append(f"# {name} = {_toml(shown)}\n")
    return "\n".join(lines)


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(str(k))} = {_toml(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value)
