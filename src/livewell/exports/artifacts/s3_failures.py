"""Which failure of ours an error of the S3 client is.

The client's errors hold the whole request: bucket, key, address, and what the server answered. Here
they are read, and nothing of them is kept. S3's own codes are looked for first; where there are
none (an answer to HEAD has no body) the kind of the error decides.
"""

from __future__ import annotations

import re

from livewell.exports.artifacts.store import ArtifactError, Detail, Reason

_CODE = re.compile(r"<Code>\s*([A-Za-z]{3,60})\s*</Code>")

_CODES: dict[str, tuple[Reason, Detail]] = {
    **dict.fromkeys(("NoSuchKey",), ("not_there", "")),
    **dict.fromkeys(("PreconditionFailed", "ConditionalRequestConflict", "OperationAborted"), ("already_there", "")),
    **dict.fromkeys(("NoSuchBucket", "InvalidBucketName", "AllAccessDisabled"), ("refused", "bucket")),
    **dict.fromkeys(
        ("InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken", "InvalidClientTokenId", "AuthFailure"),
        ("refused", "credentials"),
    ),
    **dict.fromkeys(("ExpiredToken", "TokenRefreshRequired"), ("refused", "expired_credentials")),
    **dict.fromkeys(("RequestTimeTooSkewed", "RequestExpired"), ("refused", "clock")),
    **dict.fromkeys(("AccessDenied", "AccountProblem", "MethodNotAllowed"), ("refused", "permission")),
    **dict.fromkeys(
        (
            "PermanentRedirect",
            "TemporaryRedirect",
            "AuthorizationHeaderMalformed",
            "IllegalLocationConstraintException",
        ),
        ("refused", "region"),
    ),
    **dict.fromkeys(("EntityTooLarge", "MaxMessageLengthExceeded"), ("refused", "size")),
    **dict.fromkeys(
        ("QuotaExceeded", "InsufficientStorage", "XMinioStorageFull", "XMinioAdminBucketQuotaExceeded"),
        ("full", "quota"),
    ),
    **dict.fromkeys(
        (
            "SlowDown",
            "ServiceUnavailable",
            "InternalError",
            "RequestLimitExceeded",
            "Throttling",
            "ThrottlingException",
        ),
        ("unreachable", "busy"),
    ),
    **dict.fromkeys(("RequestTimeout",), ("unreachable", "timeout")),
}

_STATUS = re.compile(r"non-2xx status code: (\d{3})")
_STATUSES: dict[str, tuple[Reason, Detail]] = {
    "400": ("refused", ""),
    "401": ("refused", "credentials"),
    "403": ("refused", "permission"),
    "404": ("refused", "bucket"),
    "413": ("refused", "size"),
    "416": ("broken", ""),
    "507": ("full", "quota"),
    **dict.fromkeys(("429", "500", "502", "503", "504"), ("unreachable", "busy")),
}
_TRANSPORT = re.compile(r"kind: (Timeout|Connect|Request|Interrupted|Decode)\b")
_TRANSPORTS: dict[str, Detail] = {"Timeout": "timeout"}
_REDIRECT = "redirect without LOCATION"
_KINDS: dict[str, tuple[Reason, Detail]] = {
    "FileNotFoundError": ("not_there", ""),
    "NotFoundError": ("not_there", ""),
    "AlreadyExistsError": ("already_there", ""),
    "PreconditionError": ("already_there", ""),
    "PermissionDeniedError": ("refused", "permission"),
    "UnauthenticatedError": ("refused", "credentials"),
    "InvalidPathError": ("refused", "path"),
}


def read_failure(error: BaseException) -> ArtifactError:
    """Our own error in place of the client's; the caller lets go of that one."""
    text = str(error)
    code = _CODE.search(text)
    if code is not None and code[1] in _CODES:
        return ArtifactError(*_CODES[code[1]])
    kind = _KINDS.get(type(error).__name__)
    if kind is not None:
        return ArtifactError(*kind)
    status = _STATUS.search(text)
    if status is not None:
        return ArtifactError(*_STATUSES.get(status[1], ("refused", "")))
    if _REDIRECT in text:
        return ArtifactError("refused", "region")
    transport = _TRANSPORT.search(text)
    if transport is not None:
        return ArtifactError("unreachable", _TRANSPORTS.get(transport[1], "connection"))
    return ArtifactError("broken")  # an answer came, and it was none of S3's
