"""The three statements: a row per fiscal period.

It is filed some weeks after the period's end, and never changed afterwards.

A row is a pure function of symbol and period; the instant that is asked decides only which rows are
filed by then. The sums are right (gross profit, total assets, net change in cash), so that a sanity
rule of a type has something to hold on to.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Any

from livewell.apps.market.simulator.data.noise import unit
from livewell.apps.market.simulator.data.prices import Listing
from livewell.apps.market.simulator.data.trading_day import ZONE, wall_text

__all__ = ["balance_sheet_rows", "cash_flow_rows", "income_rows"]

Figures = dict[str, int | float]
Draw = Callable[[int], float]

ENDS = {1: (3, 31), 2: (6, 30), 3: (9, 30), 4: (12, 31)}
YEARS_BACK_MAX = 30
LIMIT_DEFAULT = 5
LIMIT_MAX = 1_000
FILED, REVENUE, INCOME, BALANCE, CASH = 60, 61, 100, 200, 300
YEARLY = ("FY", "annual")


def income_rows(listing: Listing, at: int, query: Mapping[str, str]) -> list[dict[str, Any]]:
    """Answer /income-statement."""
    return _rows(listing, at, query, _income)


def balance_sheet_rows(listing: Listing, at: int, query: Mapping[str, str]) -> list[dict[str, Any]]:
    """Answer /balance-sheet-statement."""
    return _rows(listing, at, query, _balance_sheet)


def cash_flow_rows(listing: Listing, at: int, query: Mapping[str, str]) -> list[dict[str, Any]]:
    """Answer /cash-flow-statement."""
    return _rows(listing, at, query, _cash_flow)


def _rows(
    listing: Listing, at: int, query: Mapping[str, str], figures: Callable[[Listing, Draw, int, float], Figures]
) -> list[dict[str, Any]]:
    wanted = query.get("period", "annual")
    limit = int(query["limit"]) if query.get("limit", "").isdecimal() else LIMIT_DEFAULT
    rows: list[dict[str, Any]] = []
    for year, quarter, period in _periods(at, wanted):
        accepted = _accepted(listing, year, quarter)
        if accepted > at:
            continue
        if len(rows) >= min(limit, LIMIT_MAX):
            break
        place = year * 8 + (quarter if period != "FY" else 5)
        revenue = _revenue(listing, year, quarter, period)
        head = _head(listing, year, quarter, period, accepted)
        rows.append({**head, **figures(listing, partial(_draw, listing.code, place), place, revenue)})
    return rows


def _periods(at: int, wanted: str) -> Iterator[tuple[int, int, str]]:
    """Go back from the newest period that may be filed."""
    this_year = datetime.fromtimestamp(at, UTC).year
    for year in range(this_year, this_year - YEARS_BACK_MAX, -1):
        if wanted in YEARLY:
            yield year, 4, "FY"
            continue
        for quarter in (4, 3, 2, 1):
            if wanted in ("quarter", f"Q{quarter}"):
                yield year, quarter, f"Q{quarter}"


def _accepted(listing: Listing, year: int, quarter: int) -> int:
    ended = datetime(year, *ENDS[quarter], 16, 30, tzinfo=ZONE)
    days = 25 + int(20 * unit(listing.code, FILED, year * 8 + quarter))
    return int((ended + timedelta(days=days)).timestamp()) + listing.code % 3_600


def _head(listing: Listing, year: int, quarter: int, period: str, accepted: int) -> dict[str, Any]:
    stamp = wall_text(accepted)
    return {
        "date": date(year, *ENDS[quarter]).isoformat(),
        "symbol": listing.symbol,
        "reportedCurrency": "USD",
        "cik": f"{listing.code % 2_000_000:010d}",
        "filingDate": stamp[:10],
        "acceptedDate": stamp,
        "fiscalYear": str(year),
        "period": period,
    }


def _draw(code: int, place: int, what: int) -> float:
    return unit(code, what, place)


def _revenue(listing: Listing, year: int, quarter: int, period: str) -> float:
    def of(one: int) -> float:
        growth: float = 1.05 ** (year - 2020 + one / 4)
        return (
            listing.base_price
            * listing.shares
            * 0.08
            * growth
            * (0.9 + 0.2 * unit(listing.code, REVENUE, year * 8 + one))
        )

    return sum(of(one) for one in ENDS) if period == "FY" else of(quarter)


def _income(listing: Listing, draw: Draw, _: int, revenue: float) -> Figures:
    sales = round(revenue)
    cost = round(sales * (0.4 + 0.2 * draw(INCOME)))
    research = round(sales * 0.08 * draw(INCOME + 1))
    general, selling = round(sales * 0.04 * draw(INCOME + 2)), round(sales * 0.05 * draw(INCOME + 3))
    other = round(sales * 0.01 * draw(INCOME + 4))
    depreciation = round(sales * 0.04 * draw(INCOME + 5))
    earned, paid = round(sales * 0.01 * draw(INCOME + 6)), round(sales * 0.015 * draw(INCOME + 7))
    gross = sales - cost
    expenses = research + general + selling + other
    operating = gross - expenses
    before_tax = operating + earned - paid
    tax = round(before_tax * (0.14 + 0.1 * draw(INCOME + 8)))
    net = before_tax - tax
    diluted = round(listing.shares * 1.01)
    return {
        "revenue": sales,
        "costOfRevenue": cost,
        "grossProfit": gross,
        "researchAndDevelopmentExpenses": research,
        "generalAndAdministrativeExpenses": general,
        "sellingAndMarketingExpenses": selling,
        "sellingGeneralAndAdministrativeExpenses": general + selling,
        "otherExpenses": other,
        "operatingExpenses": expenses,
        "costAndExpenses": cost + expenses,
        "netInterestIncome": earned - paid,
        "interestIncome": earned,
        "interestExpense": paid,
        "depreciationAndAmortization": depreciation,
        "ebitda": operating + depreciation,
        "ebit": operating,
        "nonOperatingIncomeExcludingInterest": 0,
        "operatingIncome": operating,
        "totalOtherIncomeExpensesNet": earned - paid,
        "incomeBeforeTax": before_tax,
        "incomeTaxExpense": tax,
        "netIncomeFromContinuingOperations": net,
        "netIncomeFromDiscontinuedOperations": 0,
        "otherAdjustmentsToNetIncome": 0,
        "netIncome": net,
        "netIncomeDeductions": 0,
        "bottomLineNetIncome": net,
        "eps": round(net / listing.shares, 2),
        "epsDiluted": round(net / diluted, 2),
        "weightedAverageShsOut": listing.shares,
        "weightedAverageShsOutDil": diluted,
    }


def _balance_sheet(_: Listing, draw: Draw, __: int, revenue: float) -> Figures:
    def part(what: int, share: float) -> int:
        return round(revenue * share * (0.5 + draw(BALANCE + what)))

    cash, short = part(0, 0.2), part(1, 0.1)
    receivables, other_receivables, inventory = part(2, 0.15), part(3, 0.03), part(4, 0.08)
    prepaids, other_current = part(5, 0.01), part(6, 0.04)
    current = cash + short + receivables + other_receivables + inventory + prepaids + other_current
    plant, goodwill, intangible = part(7, 0.4), part(8, 0.1), part(9, 0.05)
    long_investments, tax_assets, other_long = part(10, 0.2), part(11, 0.02), part(12, 0.1)
    fixed = plant + goodwill + intangible + long_investments + tax_assets + other_long
    payables, other_payables, accrued = part(13, 0.1), part(14, 0.02), part(15, 0.03)
    short_debt, lease_now, tax_payables = part(16, 0.05), part(17, 0.01), part(18, 0.01)
    deferred, other_current_debt = part(19, 0.03), part(20, 0.05)
    current_debt = (
        payables + other_payables + accrued + short_debt + lease_now + tax_payables + deferred + other_current_debt
    )
    long_debt, deferred_long, deferred_tax, other_long_debt = (
        part(21, 0.25),
        part(22, 0.01),
        part(23, 0.02),
        part(24, 0.05),
    )
    lease = part(25, 0.03)
    far_debt = long_debt + deferred_long + deferred_tax + other_long_debt + lease
    assets, liabilities = current + fixed, current_debt + far_debt
    equity = assets - liabilities
    common, retained = part(26, 0.2), round(equity * 0.6)
    gains = -part(27, 0.01)
    debt = short_debt + long_debt + lease_now + lease
    return {
        "cashAndCashEquivalents": cash,
        "shortTermInvestments": short,
        "cashAndShortTermInvestments": cash + short,
        "netReceivables": receivables + other_receivables,
        "accountsReceivables": receivables,
        "otherReceivables": other_receivables,
        "inventory": inventory,
        "prepaids": prepaids,
        "otherCurrentAssets": other_current,
        "totalCurrentAssets": current,
        "propertyPlantEquipmentNet": plant,
        "goodwill": goodwill,
        "intangibleAssets": intangible,
        "goodwillAndIntangibleAssets": goodwill + intangible,
        "longTermInvestments": long_investments,
        "taxAssets": tax_assets,
        "otherNonCurrentAssets": other_long,
        "totalNonCurrentAssets": fixed,
        "otherAssets": 0,
        "totalAssets": assets,
        "totalPayables": payables + other_payables,
        "accountPayables": payables,
        "otherPayables": other_payables,
        "accruedExpenses": accrued,
        "shortTermDebt": short_debt,
        "capitalLeaseObligationsCurrent": lease_now,
        "taxPayables": tax_payables,
        "deferredRevenue": deferred,
        "otherCurrentLiabilities": other_current_debt,
        "totalCurrentLiabilities": current_debt,
        "longTermDebt": long_debt,
        "deferredRevenueNonCurrent": deferred_long,
        "deferredTaxLiabilitiesNonCurrent": deferred_tax,
        "otherNonCurrentLiabilities": other_long_debt,
        "totalNonCurrentLiabilities": far_debt,
        "otherLiabilities": 0,
        "capitalLeaseObligations": lease_now + lease,
        "totalLiabilities": liabilities,
        "treasuryStock": 0,
        "preferredStock": 0,
        "commonStock": common,
        "retainedEarnings": retained,
        "additionalPaidInCapital": 0,
        "accumulatedOtherComprehensiveIncomeLoss": gains,
        "otherTotalStockholdersEquity": equity - common - retained - gains,
        "totalStockholdersEquity": equity,
        "totalEquity": equity,
        "minorityInterest": 0,
        "totalLiabilitiesAndTotalEquity": assets,
        "totalInvestments": short + long_investments,
        "totalDebt": debt,
        "netDebt": debt - cash,
    }


def _cash_flow(listing: Listing, draw: Draw, place: int, revenue: float) -> Figures:
    def part(what: int, share: float) -> int:
        return round(revenue * share * (draw(CASH + what) - 0.5))

    income = _income(listing, draw, place, revenue)
    net, depreciation = round(income["netIncome"]), round(income["depreciationAndAmortization"])
    deferred, stock = part(0, 0.02), abs(part(1, 0.06))
    receivables, inventory, payables, other_working = part(2, 0.06), part(3, 0.03), part(4, 0.06), part(5, 0.03)
    working = receivables + inventory + payables + other_working
    non_cash = part(6, 0.02)
    operating = net + depreciation + deferred + stock + working + non_cash
    plant, bought_companies = -abs(part(7, 0.12)), -abs(part(8, 0.01))
    bought, sold, other_investing = -abs(part(9, 0.2)), abs(part(10, 0.2)), part(11, 0.01)
    investing = plant + bought_companies + bought + sold + other_investing
    long_debt, short_debt = part(12, 0.08), part(13, 0.02)
    issued, bought_back = abs(part(14, 0.01)), -abs(part(15, 0.2))
    dividends, other_financing = -abs(part(16, 0.08)), part(17, 0.01)
    financing = long_debt + short_debt + issued + bought_back + dividends + other_financing
    change = operating + investing + financing
    before = round(revenue * 0.2 * (0.5 + draw(CASH + 18)))
    return {
        "netIncome": net,
        "depreciationAndAmortization": depreciation,
        "deferredIncomeTax": deferred,
        "stockBasedCompensation": stock,
        "changeInWorkingCapital": working,
        "accountsReceivables": receivables,
        "inventory": inventory,
        "accountsPayables": payables,
        "otherWorkingCapital": other_working,
        "otherNonCashItems": non_cash,
        "netCashProvidedByOperatingActivities": operating,
        "investmentsInPropertyPlantAndEquipment": plant,
        "acquisitionsNet": bought_companies,
        "purchasesOfInvestments": bought,
        "salesMaturitiesOfInvestments": sold,
        "otherInvestingActivities": other_investing,
        "netCashProvidedByInvestingActivities": investing,
        "netDebtIssuance": long_debt + short_debt,
        "longTermNetDebtIssuance": long_debt,
        "shortTermNetDebtIssuance": short_debt,
        "netStockIssuance": issued + bought_back,
        "netCommonStockIssuance": issued + bought_back,
        "commonStockIssuance": issued,
        "commonStockRepurchased": bought_back,
        "netPreferredStockIssuance": 0,
        "netDividendsPaid": dividends,
        "commonDividendsPaid": dividends,
        "preferredDividendsPaid": 0,
        "otherFinancingActivities": other_financing,
        "netCashProvidedByFinancingActivities": financing,
        "effectOfForexChangesOnCash": 0,
        "netChangeInCash": change,
        "cashAtEndOfPeriod": before + change,
        "cashAtBeginningOfPeriod": before,
        "operatingCashFlow": operating,
        "capitalExpenditure": plant,
        "freeCashFlow": operating + plant,
        "incomeTaxesPaid": round(income["incomeTaxExpense"]),
        "interestPaid": round(income["interestExpense"]),
    }
