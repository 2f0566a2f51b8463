"""A task: a Python function with a name, a validated signature and a policy.

Arguments are validated twice. At enqueue a bad argument is the caller's error and nothing is
written. At run time a payload that no longer fits (the task changed since) becomes a dead letter
with the reason, where it can be mended and redriven.

A task with batch=n takes a list: `async def refresh(quotes: list[Quote])`, where Quote is a
pydantic model whose fields are the arguments of one job. It may ask for the jobs themselves (`jobs:
list[Job]`), and answer with one outcome for each: None, or the exception it would have raised for
that job alone.
"""

from __future__ import annotations

import inspect
import json
import re
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    ConfigDict,
    PydanticSchemaGenerationError,
    TypeAdapter,
    ValidationError,
    create_model,
)
from typing_extensions import TypedDict

from livewell.errors import ConfigurationError, InvalidPayload
from livewell.model import TaskPolicy
from livewell.queue.job import Job

_QUEUE_NAME = re.compile(r"[a-z][a-z0-9_.-]{0,62}")
_STORED_BYTES_MAX = 262_144  # of one payload, in Postgres
_typed_dict: Any = TypedDict  # of fields that are known at run time only


@dataclass(frozen=True, slots=True)
class TaskDefinition:
    """Everything about a task but the way to enqueue it."""

    name: str
    function: Callable[..., Any]
    policy: TaskPolicy
    arguments: type[BaseModel]
    job_parameter: str | None
    is_async: bool
    list_parameter: str | None = None  # of a task that takes many jobs at once

    def encode(self, arguments: dict[str, Any], bytes_max: int) -> str:
        """Check the arguments against the signature and write them as JSON that Postgres accepts."""
        try:
            model = self.arguments.__pydantic_validator__.validate_python(arguments)
        except ValidationError as error:
            raise InvalidPayload(f"task {self.name}: {explain(error)}") from None
        try:
            # Written by pydantic itself: 2 µs instead of 12. What it writes and Postgres does not
            # take is rare, and looked at more closely.
            written = self.arguments.__pydantic_serializer__.to_json(model, by_alias=False)
        except ValueError:
            written = b"NaN"
        if len(written) <= bytes_max and not _suspicious(written):
            return written.decode()
        return encode_json(f"task {self.name}", model.model_dump(mode="json", by_alias=False), bytes_max)

    def encode_many(self, many: Sequence[dict[str, Any]], bytes_max: int) -> str:
        """The same for many: one JSON array.

        Checked and written all at once: 0.5 µs each instead of 5.
        """
        if bytes_max >= _STORED_BYTES_MAX:  # else each must be measured; Postgres measures what it stores anyway
            adapter = _list_of(self.arguments, as_models=self.list_parameter is not None)
            try:
                written = adapter.dump_json(adapter.validate_python(many), by_alias=False)
            except ValidationError as error:
                raise InvalidPayload(f"task {self.name}: {explain(error)}") from None
            except ValueError:
                written = b"NaN"
            if not _suspicious(written):
                return written.decode()
        return f"[{','.join(self.encode(arguments, bytes_max) for arguments in many)}]"

    def decode(self, payload: str) -> dict[str, Any]:
        """Read a payload back.

        Raises InvalidPayload when it does not fit the signature of today.
        """
        arguments: dict[str, Any] = self.decode_item(payload).__dict__
        return arguments

    def decode_item(self, payload: str) -> Any:
        """The same as the model's instance: one element of what a batch task takes."""
        try:
            # The model's own validator, past a wrapper that costs a third of it.
            return self.arguments.__pydantic_validator__.validate_json(payload)
        except ValidationError as error:
            raise InvalidPayload(f"task {self.name}: the payload no longer fits: {explain(error)}") from None


@lru_cache(maxsize=1000)
def _list_of(arguments: type[BaseModel], *, as_models: bool) -> TypeAdapter[list[Any]]:
    """Checks many.

    A model that we made of a signature has nothing but fields, and dictionaries do as well: 2 ms
    instead of 8 for 5,000, most of it for collecting garbage.
    """
    item: Any = arguments
    if not as_models:
        fields = {name: Annotated[field.annotation, field] for name, field in arguments.model_fields.items()}
        item = _typed_dict(arguments.__name__, fields)
        item.__pydantic_config__ = arguments.model_config
    return TypeAdapter(list[item])


def check_queue_name(name: str, what: str) -> None:
    """Refuse a name that the table of queues would refuse, where it is written instead of at the first enqueue."""
    if not isinstance(name, str) or not _QUEUE_NAME.fullmatch(name):
        raise ConfigurationError(f"{what}{name!r}: 1 to 63 of a-z 0-9 _ . - are allowed, beginning with a letter")


def check_policy(what: str, policy: TaskPolicy) -> None:
    """Refuse what could never be enqueued, while the app is still being declared."""
    check_queue_name(policy.queue, f"{what}: queue ")
    if policy.attempts is not None and not 1 <= policy.attempts <= 100:
        raise ConfigurationError(f"{what}: attempts {policy.attempts}: allowed are 1 to 100")
    if not -100 <= policy.priority <= 100:
        raise ConfigurationError(f"{what}: priority {policy.priority}: allowed are -100 to 100")
    if policy.lane not in (0, 1):
        raise ConfigurationError(f"{what}: lane {policy.lane}: allowed are Lane.PEOPLE (0) and Lane.BACKGROUND (1)")


def define(function: Callable[..., Any], *, name: str | None, policy: TaskPolicy) -> TaskDefinition:
    """Read a function's signature into a definition; refuse what could not be stored or called."""
    task_name = name or function.__name__
    if not task_name or len(task_name.encode()) > 200:
        raise ConfigurationError(f"task name {task_name!r}: 1 to 200 bytes are allowed")
    hints = typing.get_type_hints(function, include_extras=True)
    if policy.batch > 1:
        return _define_batch(task_name, function, hints, policy)
    fields: dict[str, Any] = {}
    job_parameter: str | None = None
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise ConfigurationError(
                f"task {task_name}: parameter {parameter} cannot be stored by name; use ordinary or "
                "keyword-only parameters"
            )
        annotation = hints.get(parameter.name, Any)
        if annotation is Job:
            job_parameter = parameter.name
            continue
        fields[parameter.name] = (annotation, ... if parameter.default is parameter.empty else parameter.default)
    try:
        arguments = create_model(
            f"{task_name}_arguments", __config__=ConfigDict(extra="forbid", ser_json_inf_nan="constants"), **fields
        )
    except PydanticSchemaGenerationError as error:
        raise ConfigurationError(
            f"task {task_name}: a parameter has a type that cannot be validated: {error}"
        ) from None
    return TaskDefinition(
        name=task_name,
        function=function,
        policy=policy,
        arguments=arguments,
        job_parameter=job_parameter,
        is_async=inspect.iscoroutinefunction(function),
    )


def _define_batch(
    task_name: str, function: Callable[..., Any], hints: dict[str, Any], policy: TaskPolicy
) -> TaskDefinition:
    """One parameter is a list of a pydantic model, another may be the list of jobs."""
    found: dict[str, type[BaseModel]] = {}
    job_parameter: str | None = None
    for name in inspect.signature(function).parameters:
        items = typing.get_args(hints.get(name)) if typing.get_origin(hints.get(name)) is list else ()
        if items == (Job,):
            job_parameter = name
        elif len(items) == 1 and isinstance(items[0], type) and issubclass(items[0], BaseModel):
            found[name] = items[0]
        else:
            raise ConfigurationError(
                f"task {task_name}: batch={policy.batch}: parameter {name} must be a list of a pydantic model, "
                "or list[Job]"
            )
    if len(found) != 1:
        raise ConfigurationError(
            f"task {task_name}: batch={policy.batch}: it needs exactly one parameter that is a list of a pydantic model"
        )
    [(list_parameter, arguments)] = found.items()
    return TaskDefinition(
        name=task_name,
        function=function,
        policy=policy,
        arguments=arguments,
        job_parameter=job_parameter,
        is_async=inspect.iscoroutinefunction(function),
        list_parameter=list_parameter,
    )


def encode_json(what: str, value: object, bytes_max: int) -> str:
    """JSON that survives Postgres: no NaN, no NUL, no lone surrogate, within the bound."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        size = len(text.encode())
    except ValueError as error:  # NaN, infinity; and UnicodeEncodeError, which is one, for a lone surrogate
        raise InvalidPayload(f"{what}: cannot be written as JSON: {error}") from None
    if "\\u0000" in text and _has_nul(value):
        raise InvalidPayload(f"{what}: a text contains the character NUL (\\u0000), which Postgres cannot store")
    if size > bytes_max:
        raise InvalidPayload(
            f"{what}: the payload has {size:,} bytes; {bytes_max:,} are allowed. Store the data and pass its key"
        )
    return text


def check_json(what: str, text: str, bytes_max: int) -> str:
    """The text of a JSON object that Postgres takes as it is: every digit of its numbers is kept."""
    try:
        value = json.loads(text, parse_constant=_refuse_constant, parse_float=str, parse_int=str)
    except (ValueError, RecursionError) as error:
        raise InvalidPayload(f"{what}: the payload is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise InvalidPayload(f"{what}: the payload must be a JSON object with the task's arguments")
    encode_json(what, value, bytes_max)  # refuses what Postgres does not take
    if len(text.encode()) > 2 * bytes_max:
        raise InvalidPayload(f"{what}: the text has {len(text):,} characters; {bytes_max:,} bytes are allowed")
    return text


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


def _suspicious(written: bytes) -> bool:
    """Perhaps not JSON as Postgres takes it."""
    return b"NaN" in written or b"Infinity" in written or b"\\u0000" in written


def _has_nul(value: object) -> bool:
    if isinstance(value, str):
        return "\x00" in value
    if isinstance(value, dict):
        return any(_has_nul(key) or _has_nul(item) for key, item in value.items())
    return isinstance(value, list) and any(_has_nul(item) for item in value)


def explain(error: ValidationError) -> str:
    """What is wrong, by argument, without the value: it may be personal."""
    return "; ".join(
        f"{'.'.join(str(part) for part in problem['loc']) or 'arguments'}: {problem['msg']}"
        for problem in error.errors(include_input=False, include_url=False)[:5]
    )
