"""A render function whose document is typst source: what a hole in our templates would allow."""

import typst

from livewell.apps.resumes import render as resumes
from livewell.exports.render.rendered import Rendered, RenderRefused

warm_up = resumes.warm_up


def render(document: bytes, options: bytes) -> Rendered:
    [press] = resumes._press
    try:
        return Rendered(press.print(document, {}, format="pdf")[0])
    except typst.TypstError:
        raise RenderRefused("template", "this source is refused") from None
