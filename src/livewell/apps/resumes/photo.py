"""The photo: checked, cropped to a square, and as many pixels as the quality says.

    data URI ──▶ bytes ──format, size──▶ pixels ──crop, shrink──▶ JPEG     └── anything wrong: bad_image

What comes out is made anew from pixels: no metadata (a place where it was taken), no profile, no
second picture hidden behind the first. Only PNG, JPEG and WebP are read, never SVG, which could
name other files. The size is known from the header, before a pixel is decoded, so that a
decompression bomb costs nothing.
"""

from __future__ import annotations

import base64
import binascii
import io
import warnings
from typing import Final

from PIL import Image, ImageOps

from livewell.exports.render.rendered import RenderRefused

DPI: Final = {"draft": 96, "normal": 150, "high": 300}
_JPEG_QUALITY: Final = {"draft": 75, "normal": 85, "high": 92}
BYTES_MAX = 5_000_000
PIXELS_MAX = 25_000_000
_FORMATS = ("PNG", "JPEG", "WEBP")
_FACE = (0.5, 0.35)  # where the crop is centred: a face is above the middle
_FIELD = "basics.image"


def photo_jpeg(uri: str, *, millimetres: float, quality: str, grey: bool) -> bytes:
    """The picture as the template prints it, as a JPEG."""
    data = _bytes_of(uri)
    pixels = round(millimetres / 25.4 * DPI[quality])
    try:
        with warnings.catch_warnings(), Image.open(io.BytesIO(data), formats=_FORMATS) as opened:
            warnings.simplefilter("ignore")
            if opened.width * opened.height > PIXELS_MAX:
                raise RenderRefused("bad_image", f"{_FIELD}: more than {PIXELS_MAX:,} pixels")
            opened.draft("RGB", (pixels, pixels))  # a JPEG may be decoded smaller at once
            picture = _flat(ImageOps.exif_transpose(opened), "L" if grey else "RGB")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        raise RenderRefused("bad_image", f"{_FIELD}: this is no whole PNG, JPEG or WebP picture") from None
    side = min(pixels, *picture.size)
    picture = ImageOps.fit(picture, (side, side), Image.Resampling.LANCZOS, centering=_FACE)
    out = io.BytesIO()
    picture.save(out, "JPEG", quality=_JPEG_QUALITY[quality], optimize=True)
    return out.getvalue()


def _bytes_of(uri: str) -> bytes:
    head, comma, text = uri.partition(",")
    if not comma or not head.startswith("data:image/") or not head.endswith(";base64"):
        raise RenderRefused("bad_image", f"{_FIELD}: this is no data URI of a picture")
    if len(text) > BYTES_MAX * 4 // 3 + 4:
        raise RenderRefused("bad_image", f"{_FIELD}: more than {BYTES_MAX:,} bytes")
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise RenderRefused("bad_image", f"{_FIELD}: this is not base64") from None


def _flat(picture: Image.Image, mode: str) -> Image.Image:
    """Without transparency (white shines through) and in one of two modes."""
    if "transparency" in picture.info or picture.mode in {"RGBA", "LA", "PA"}:
        clear = picture.convert("RGBA")
        white = Image.new("RGBA", clear.size, "white")
        return Image.alpha_composite(white, clear).convert(mode)
    if picture.mode.startswith("I;16"):
        picture = picture.point(lambda value: value / 256).convert("L")
    return picture.convert(mode)
