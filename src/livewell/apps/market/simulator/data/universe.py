"""The symbols there are: well-known ones first, then as many made-up ones as are wanted.

A made-up ticker is five letters that start with Q (QAAAA, QAAAB, …): no listed share is among the
first ones, so nobody takes simulated rows of it for real ones.
"""

from collections.abc import Sequence
from itertools import islice

from livewell.errors import LivewellError

__all__ = ["SYMBOLS_MAX", "Universe"]

KNOWN = """\
AAPL Apple Inc.|MSFT Microsoft Corporation|NVDA NVIDIA Corporation|AMZN Amazon.com, Inc.|GOOGL Alphabet Inc.|\
META Meta Platforms, Inc.|TSLA Tesla, Inc.|AVGO Broadcom Inc.|BRK-B Berkshire Hathaway Inc.|JPM JPMorgan Chase & Co.|\
LLY Eli Lilly and Company|V Visa Inc.|UNH UnitedHealth Group Incorporated|XOM Exxon Mobil Corporation|\
MA Mastercard Incorporated|COST Costco Wholesale Corporation|HD The Home Depot, Inc.|PG The Procter & Gamble Company|\
JNJ Johnson & Johnson|WMT Walmart Inc.|NFLX Netflix, Inc.|ABBV AbbVie Inc.|BAC Bank of America Corporation|\
CRM Salesforce, Inc.|ORCL Oracle Corporation|KO The Coca-Cola Company|CVX Chevron Corporation|MRK Merck & Co., Inc.|\
AMD Advanced Micro Devices, Inc.|PEP PepsiCo, Inc.|CSCO Cisco Systems, Inc.|ADBE Adobe Inc.|\
TMO Thermo Fisher Scientific Inc.|ACN Accenture plc|MCD McDonald's Corporation|ABT Abbott Laboratories|LIN Linde plc|\
GE General Electric Company|IBM International Business Machines Corporation|DIS The Walt Disney Company|\
QCOM QUALCOMM Incorporated|TXN Texas Instruments Incorporated|INTU Intuit Inc.|CAT Caterpillar Inc.|\
VZ Verizon Communications Inc.|AMGN Amgen Inc.|PFE Pfizer Inc.|NKE NIKE, Inc.|T AT&T Inc.|INTC Intel Corporation"""
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
SYMBOLS_MAX = 400_000
SYMBOLS_MIN = 2  # an answer about the wrong symbol needs a second one


class Universe:
    """Every symbol with its place in the list. Nothing is known of a symbol that is not in it."""

    def __init__(self, count: int) -> None:
        if not SYMBOLS_MIN <= count <= SYMBOLS_MAX:
            msg = f"a market of {count} symbols: it has at least {SYMBOLS_MIN} and at most {SYMBOLS_MAX:,}"
            raise LivewellError(msg)
        known = [entry.partition(" ")[::2] for entry in KNOWN.split("|")]
        self._names = dict(known[:count])
        self.symbols = (*self._names, *(_made_up(number) for number in range(count - len(self._names))))
        self.places = {symbol: place for place, symbol in enumerate(self.symbols)}

    def __contains__(self, symbol: str) -> bool:
        return symbol in self.places

    def name(self, symbol: str) -> str:
        """Give the company's name."""
        return self._names.get(symbol) or f"{symbol.capitalize()} Holdings, Inc."

    def others(self, symbols: Sequence[str]) -> tuple[str, ...]:
        """Give as many that were not asked for, the next in the list: those that a confused
        upstream answers about.
        """
        first = self.places.get(symbols[0], -1) + 1 if symbols else 0
        following = (self.symbols[(first + step) % len(self.symbols)] for step in range(len(self.symbols)))
        return tuple(islice((symbol for symbol in following if symbol not in symbols), len(symbols)))


def _made_up(number: int) -> str:
    letters = ""
    for _ in range(4):
        number, letter = divmod(number, 26)
        letters = LETTERS[letter] + letters
    return "Q" + letters
