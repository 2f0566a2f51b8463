"""`/profile`: one row of 36 fields per symbol, and no time in it anywhere."""

from typing import Any

from livewell.apps.market.simulator.data.noise import unit
from livewell.apps.market.simulator.data.prices import Listing, Market
from livewell.apps.market.simulator.data.quote import exchange, quote_row

__all__ = ["profile_row"]

BUSINESS = (
    ("Technology", "Consumer Electronics"),
    ("Healthcare", "Drug Manufacturers - General"),
    ("Financial Services", "Banks - Diversified"),
    ("Energy", "Oil & Gas Integrated"),
    ("Consumer Defensive", "Beverages - Non-Alcoholic"),
    ("Industrials", "Specialty Industrial Machinery"),
)
KNOWN = {
    ("Technology", "Consumer Electronics"): "AAPL",
    ("Technology", "Software"): "MSFT ORCL CRM ADBE INTU ACN IBM CSCO",
    ("Technology", "Semiconductors"): "NVDA AVGO AMD QCOM TXN INTC",
    ("Communication Services", "Internet Content & Information"): "GOOGL META",
    ("Communication Services", "Entertainment"): "NFLX DIS",
    ("Communication Services", "Telecom Services"): "VZ T",
    ("Consumer Cyclical", "Auto Manufacturers"): "TSLA",
    ("Consumer Cyclical", "Retail"): "AMZN HD MCD NKE",
    ("Consumer Defensive", "Retail"): "COST WMT",
    ("Consumer Defensive", "Household Products"): "PG",
    ("Consumer Defensive", "Beverages - Non-Alcoholic"): "KO PEP",
    ("Energy", "Oil & Gas Integrated"): "XOM CVX",
    ("Financial Services", "Banks - Diversified"): "JPM BAC",
    ("Financial Services", "Credit Services"): "V MA",
    ("Financial Services", "Insurance - Diversified"): "BRK-B",
    ("Healthcare", "Drug Manufacturers - General"): "LLY JNJ ABBV MRK AMGN PFE",
    ("Healthcare", "Healthcare Plans"): "UNH",
    ("Healthcare", "Medical Devices"): "TMO ABT",
    ("Basic Materials", "Specialty Chemicals"): "LIN",
    ("Industrials", "Specialty Industrial Machinery"): "GE CAT",
}
BUSINESS_OF = {symbol: business for business, symbols in KNOWN.items() for symbol in symbols.split()}
PLACES = (
    ("Cupertino", "CA", "95014"),
    ("New York", "NY", "10017"),
    ("Austin", "TX", "78725"),
    ("Boston", "MA", "02110"),
)
FULL_NAMES = {"NASDAQ": "NASDAQ Global Select", "NYSE": "New York Stock Exchange", "AMEX": "NYSE American"}
BETA, DIVIDEND, PEOPLE, FOUNDED = 50, 51, 52, 53


def profile_row(market: Market, listing: Listing, at: int) -> dict[str, Any]:
    """Make the profile of one symbol. Text may be an empty string (ceo, phone of some), as it is at
    FMP.
    """
    quote = quote_row(market, listing, at)
    code, symbol = listing.code, listing.symbol
    sector, industry = BUSINESS_OF.get(symbol) or BUSINESS[code % len(BUSINESS)]
    city, state, postcode = PLACES[code % len(PLACES)]
    site = symbol.lower().replace(".", "-")
    low, high = quote["yearLow"] or quote["dayLow"], quote["yearHigh"] or quote["dayHigh"]
    year = 1962 + int(unit(code, FOUNDED) * 60)
    return {
        "symbol": symbol,
        "price": quote["price"],
        "marketCap": quote["marketCap"],
        "beta": round(0.3 + 1.7 * unit(code, BETA), 3),
        "lastDividend": round(4 * unit(code, DIVIDEND), 2) if code % 3 else 0,
        "range": f"{low}-{high}",
        "change": quote["change"],
        "changePercentage": quote["changePercentage"],
        "volume": quote["volume"],
        "averageVolume": int(listing.shares * 0.007),
        "companyName": listing.name,
        "currency": "USD",
        "cik": f"{code % 2_000_000:010d}",
        "isin": f"US{code % 10**9:09d}{code % 10}",
        "cusip": f"{code % 10**9:09d}",
        "exchangeFullName": FULL_NAMES[quote["exchange"]],
        "exchange": exchange(listing),
        "industry": industry,
        "website": f"https://www.{site}.example",
        "description": f"{listing.name} works in {industry.lower()} and exists only in this simulator.",
        "ceo": "" if code % 11 == 0 else f"Dr. {symbol.capitalize()} Example",
        "sector": sector,
        "country": "US",
        "fullTimeEmployees": str(50 + int(unit(code, PEOPLE) ** 3 * 200_000)),
        "phone": "" if code % 7 == 0 else f"212 555 {code % 10_000:04d}",
        "address": f"{1 + code % 900} Example Street",
        "city": city,
        "state": state,
        "zip": postcode,
        "image": f"https://images.{site}.example/{symbol}.png",
        "ipoDate": f"{year}-{1 + code % 12:02d}-{1 + code % 28:02d}",
        "defaultImage": code % 13 == 0,
        "isEtf": False,
        "isActivelyTrading": True,
        "isAdr": code % 19 == 0,
        "isFund": False,
    }
