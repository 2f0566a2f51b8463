"""Find the app that a command runs.

It is `module:attribute`, from the argument, LIVEWELL_APP or livewell.toml. Without any of these it
is the app that has no tasks and only refreshes.
"""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from livewell.errors import ConfigurationError, LivewellError

if TYPE_CHECKING:
    from livewell.app import Livewell
    from livewell.settings import Settings

_SHAPE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
_SHOWN_MAX = 8
PLAIN = "livewell.apps.plain:app"


def chosen_target(given: str | None, settings: Settings) -> str:
    """What the user said, wherever they said it."""
    return given or settings.app or PLAIN


def load_app(target: str) -> Livewell:
    """Import the app; the current folder is searched first.

    What is missing is named, with what is there instead.
    """
    from livewell.app import Livewell  # noqa: PLC0415 - heavy

    if not _SHAPE.fullmatch(target) or ".py:" in target:
        raise ConfigurationError(f"APP {target!r}: write module:attribute, for example {_suggested(target)}")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    name, _, attribute = target.partition(":")
    module = _import(target, name)
    found: Any = module
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise ConfigurationError(
                f"APP {target}: module {name} ({_file(module)}) has no {attribute!r}; {_apps_in(module, Livewell)}"
            )
        found = getattr(found, part)
    if not isinstance(found, Livewell):
        raise ConfigurationError(
            f"APP {target}: is of type {type(found).__name__}, not a Livewell; {_apps_in(module, Livewell)}"
        )
    return found


def _import(target: str, name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except LivewellError:
        raise
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise ConfigurationError(f"APP {target}: importing {name} failed: {error}") from error
        raise ConfigurationError(
            f"APP {target}: there is no module {error.name!r}, neither in {Path.cwd()} nor among what is "
            f"installed; {_modules_here()}"
        ) from error
    except Exception as error:
        raise ConfigurationError(
            f"APP {target}: importing {name} failed: {type(error).__name__}: {error}{_where(error)}"
        ) from error


def _suggested(target: str) -> str:
    """`shop/jobs.py:app` and `shop.jobs` are what people type first."""
    path, _, attribute = target.partition(":")
    name = path.removeprefix("./").removesuffix(".py").replace("/", ".").strip(".")
    better = f"{name}:{attribute or 'app'}"
    return better if _SHAPE.fullmatch(better) else "shop.jobs:app"


def _apps_in(module: ModuleType, kind: type) -> str:
    apps = sorted(name for name, value in vars(module).items() if isinstance(value, kind))
    if not apps:
        return "it holds no Livewell app; make one with: app = Livewell()"
    return f"the apps there: {', '.join(f'{module.__name__}:{name}' for name in apps[:_SHOWN_MAX])}"


def _modules_here() -> str:
    files = [path.stem for path in Path.cwd().glob("*.py") if path.stem != "__init__"]
    packages = [path.parent.name for path in Path.cwd().glob("*/__init__.py")]
    names = sorted({name for name in (*files, *packages) if name.isidentifier()})
    more = f" and {len(names) - _SHOWN_MAX} more" if len(names) > _SHOWN_MAX else ""
    return f"here are: {', '.join(names[:_SHOWN_MAX])}{more}" if names else "this folder holds no Python modules"


def _file(module: ModuleType) -> str:
    return str(getattr(module, "__file__", None) or "a namespace package")


def _where(error: BaseException) -> str:
    """The last line of the user's own code, if the traceback has one."""
    if isinstance(error, SyntaxError):
        return ""
    trace, place = error.__traceback__, ""
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not file.startswith("<") and "site-packages" not in file and "importlib" not in file and file != __file__:
            place = f" ({file}, line {trace.tb_lineno})"
        trace = trace.tb_next
    return place
