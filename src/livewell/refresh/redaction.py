"""Hide an upstream's credentials in results.

Every result of a call passes here before anything is stored or logged (M3).
"""

from __future__ import annotations

from dataclasses import replace

from livewell.refresh.result import Failure, Forgotten, Missing, Result, Results, Same, Singly, Unproven, Value
from livewell.refresh.validate.refusal import clean
from livewell.telemetry.secret_forms import Secrets


def hide_secrets(results: Results, secrets: Secrets) -> dict[str, Result]:
    """The results, with no secret in their words.

    Text is cut only after the search: half a secret would not be found.
    """
    each = {id(result): result for result in results.values()}  # often one for all keys
    hidden = {place: _without(secrets, result) for place, result in each.items()}
    return {key: hidden[id(result)] for key, result in results.items()}


def _without(secrets: Secrets, result: Result) -> Result:
    match result:
        case Failure() | Singly() | Unproven() | Forgotten():
            return replace(result, detail=clean(result.detail, secrets))
        case Value(etag=etag, last_modified=last_modified):
            # Both are stored, too. The rows were searched by validate(), which refuses a value that
            # holds a secret.
            kept = [text if text and secrets.hide(text) == text else None for text in (etag, last_modified)]
            return replace(result, etag=kept[0], last_modified=kept[1])
        case Same() | Missing():
            return result
