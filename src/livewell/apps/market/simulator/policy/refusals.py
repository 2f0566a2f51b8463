"""The words FMP refuses with: a status and the text under "Error Message".

A classifier matches words and status. "upgrade your plan" stands in several of them on purpose: it
stands in FMP's too, and a classifier that goes by it is wrong.
"""

from typing import NamedTuple

__all__ = ["REFUSALS", "Refusal"]

PRICING = "https://site.financialmodelingprep.com/developer/docs/pricing"


class Refusal(NamedTuple):
    """One way to say no."""

    status: int
    message: str


REFUSALS = {
    "invalid_key": Refusal(
        401,
        "Invalid API KEY. Please retry or visit our documentation to create one FREE "
        "https://site.financialmodelingprep.com/developer/docs",
    ),
    "entitlement_symbol": Refusal(
        402,
        "Premium Query Parameter: 'Special Endpoint : This value set for 'symbol' is not available under your "
        "current subscription "
        f"please visit our subscription page to upgrade your plan at {PRICING}",
    ),
    "entitlement_path": Refusal(
        402,
        "Restricted Endpoint: This endpoint is not available under your current subscription "
        f"please visit our subscription page to upgrade your plan at {PRICING}",
    ),
    "legacy_path": Refusal(
        403,
        "Legacy Endpoint : Due to Legacy endpoints being no longer supported - This endpoint is only available "
        "for legacy users "
        f"who have valid subscriptions prior August 31, 2025. Please visit our subscription page {PRICING}",
    ),
    "exclusive": Refusal(
        403,
        "Exclusive Endpoint : This endpoint is not available under your current subscription agreement, "
        f"please visit our subscription page to upgrade your plan at {PRICING}",
    ),
    "limited_symbols": Refusal(
        403, f"This endpoint is limited to the following symbols. Please upgrade your plan for more at {PRICING}"
    ),
    "suspended": Refusal(403, "Account suspended. Please contact support to reactivate your account."),
    "rate": Refusal(
        429,
        "Limit Reach . Please upgrade your plan or visit our documentation for more details at "
        "https://site.financialmodelingprep.com/",
    ),
    "bandwidth": Refusal(
        429,
        "Bandwidth Limit Reach . Please upgrade your plan or visit our documentation for more details at "
        "https://site.financialmodelingprep.com/",
    ),
    "error_500": Refusal(500, "Internal Server Error"),
    "error_503": Refusal(503, "Service Unavailable"),
    "missing_parameter": Refusal(400, "Query Error: Invalid or missing query parameter"),
    "no_such_path": Refusal(404, "Not Found: this path does not exist"),
    "malformed": Refusal(400, "Bad Request"),
    "method": Refusal(405, "Method Not Allowed: only GET"),
}
