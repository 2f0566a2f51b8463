"""What a user may choose of a PDF (E6), and the bytes by which two choices are the same (E1).

Margins are inches; one for all sides, or one for each side that differs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from livewell.errors import InvalidOption

_BYTES_MAX = 4096


def _inches(value: object) -> object:
    """A float as it is written: 0.1 is a tenth, not 0.1000000000000000055."""
    if isinstance(value, bool):
        raise ValueError("a number of inches")
    return Decimal(repr(value)) if isinstance(value, float) else value


Inches = Annotated[Decimal, BeforeValidator(_inches), Field(ge=0, le=2, max_digits=6, decimal_places=4)]


class PdfOptions(BaseModel):
    """How a PDF looks. `quality` is that of images: 96, 150 or 300 dots an inch.

    standard: accessible is PDF/A-2a and PDF/UA-1; plain is a PDF without either.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    template: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,62}$")] = "minimal"
    page: Literal["A4", "Letter", "Legal"] = "Letter"
    margin: Inches = Decimal(1)
    margin_top: Inches | None = None
    margin_right: Inches | None = None
    margin_bottom: Inches | None = None
    margin_left: Inches | None = None
    quality: Literal["draft", "normal", "high"] = "normal"
    colour: Literal["colour", "grey"] = "colour"
    standard: Literal["accessible", "plain"] = "accessible"

    @model_validator(mode="after")
    def _every_side(self) -> Self:
        for side in ("top", "right", "bottom", "left"):
            name = f"margin_{side}"
            value = getattr(self, name)
            object.__setattr__(self, name, _plain(self.margin if value is None else value))
        object.__setattr__(self, "margin", _plain(self.margin))
        return self

    def canonical(self) -> bytes:
        """Sorted JSON with every side named: equal for options that look the same."""
        told = self.model_dump(mode="json", exclude={"margin"})
        return json.dumps(told, sort_keys=True, separators=(",", ":")).encode()


def read_options(given: Mapping[str, Any] | None, model: type[BaseModel] = PdfOptions) -> Any:
    """The options, or InvalidOption that names each wrong one and what is allowed. Never their values."""
    try:
        found = model.model_validate(dict(given or {}))
    except ValidationError as error:
        told = "; ".join(
            f"{'.'.join(str(part) for part in one['loc']) or 'options'}: {one['msg']}"
            for one in error.errors(include_input=False, include_url=False, include_context=False)
        )
        raise InvalidOption(f"options: {told[:1000]}") from None
    if len(canonical(found)) > _BYTES_MAX:
        raise InvalidOption(f"options: more than {_BYTES_MAX} bytes")
    return found


def canonical(options: BaseModel) -> bytes:
    """The bytes of any options that are hashed for E1, stored, and given to the renderer."""
    own = getattr(options, "canonical", None)
    if own is not None:
        made: bytes = own()
        return made
    return json.dumps(options.model_dump(mode="json"), sort_keys=True, separators=(",", ":")).encode()


def _plain(value: Decimal) -> Decimal:
    """1.50 and 1.5 are the same margin."""
    found = value.normalize()
    return Decimal(0) if found == 0 else found.quantize(1) if found == found.to_integral() else found
