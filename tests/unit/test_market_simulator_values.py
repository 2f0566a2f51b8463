"""The simulated market is a pure function of seed, symbol and instant, and its rows are FMP's field by field."""

import random
import time
from collections import Counter

import orjson
import pytest

from livewell.apps.market.simulator import ACCOUNT_WALLS, FAMILIES, FAULTS, STOPPING, Knobs, hostile
from livewell.apps.market.simulator.data.dataset import DATASETS, PATHS, rows_of
from livewell.apps.market.simulator.data.prices import Market
from livewell.apps.market.simulator.data.trading_day import last_close, newest_session, session
from livewell.apps.market.simulator.knobs import KnobsRefused
from livewell.apps.market.simulator.policy.fault_deck import FaultDeck
from livewell.apps.market.simulator.policy.faults import FaultRefused
from livewell.apps.market.simulator.policy.limits import Bandwidth, CallWindow

NOON = 1_763_139_600  # Friday 2025-11-14, 12:00 in New York
HEAD = "date symbol reportedCurrency cik filingDate acceptedDate fiscalYear period"
FIELDS = {
    "quote": "symbol name price changePercentage change volume dayLow dayHigh yearHigh yearLow marketCap "
    "priceAvg50 priceAvg200 exchange open previousClose timestamp",
    "profile": "symbol price marketCap beta lastDividend range change changePercentage volume averageVolume "
    "companyName currency cik isin cusip exchangeFullName exchange "
    "industry website description ceo sector country fullTimeEmployees phone address city state zip image "
    "ipoDate defaultImage isEtf isActivelyTrading isAdr isFund",
    "income_statement": f"{HEAD} revenue costOfRevenue grossProfit researchAndDevelopmentExpenses "
    "generalAndAdministrativeExpenses sellingAndMarketingExpenses "
    "sellingGeneralAndAdministrativeExpenses otherExpenses operatingExpenses costAndExpenses netInterestIncome "
    "interestIncome interestExpense "
    "depreciationAndAmortization ebitda ebit nonOperatingIncomeExcludingInterest operatingIncome "
    "totalOtherIncomeExpensesNet incomeBeforeTax incomeTaxExpense "
    "netIncomeFromContinuingOperations netIncomeFromDiscontinuedOperations otherAdjustmentsToNetIncome "
    "netIncome netIncomeDeductions bottomLineNetIncome eps "
    "epsDiluted weightedAverageShsOut weightedAverageShsOutDil",
    "balance_sheet_statement": f"{HEAD} cashAndCashEquivalents shortTermInvestments cashAndShortTermInvestments "
    "netReceivables accountsReceivables otherReceivables "
    "inventory prepaids otherCurrentAssets totalCurrentAssets propertyPlantEquipmentNet goodwill "
    "intangibleAssets goodwillAndIntangibleAssets longTermInvestments "
    "taxAssets otherNonCurrentAssets totalNonCurrentAssets otherAssets totalAssets totalPayables "
    "accountPayables otherPayables accruedExpenses shortTermDebt "
    "capitalLeaseObligationsCurrent taxPayables deferredRevenue otherCurrentLiabilities totalCurrentLiabilities "
    "longTermDebt deferredRevenueNonCurrent "
    "deferredTaxLiabilitiesNonCurrent otherNonCurrentLiabilities totalNonCurrentLiabilities otherLiabilities "
    "capitalLeaseObligations totalLiabilities treasuryStock "
    "preferredStock commonStock retainedEarnings additionalPaidInCapital "
    "accumulatedOtherComprehensiveIncomeLoss otherTotalStockholdersEquity "
    "totalStockholdersEquity totalEquity minorityInterest totalLiabilitiesAndTotalEquity totalInvestments "
    "totalDebt netDebt",
    "cash_flow_statement": f"{HEAD} netIncome depreciationAndAmortization deferredIncomeTax "
    "stockBasedCompensation changeInWorkingCapital accountsReceivables inventory "
    "accountsPayables otherWorkingCapital otherNonCashItems netCashProvidedByOperatingActivities "
    "investmentsInPropertyPlantAndEquipment acquisitionsNet "
    "purchasesOfInvestments salesMaturitiesOfInvestments otherInvestingActivities "
    "netCashProvidedByInvestingActivities netDebtIssuance longTermNetDebtIssuance "
    "shortTermNetDebtIssuance netStockIssuance netCommonStockIssuance commonStockIssuance "
    "commonStockRepurchased netPreferredStockIssuance netDividendsPaid "
    "commonDividendsPaid preferredDividendsPaid otherFinancingActivities netCashProvidedByFinancingActivities "
    "effectOfForexChangesOnCash netChangeInCash "
    "cashAtEndOfPeriod cashAtBeginningOfPeriod operatingCashFlow capitalExpenditure freeCashFlow "
    "incomeTaxesPaid interestPaid",
    "earnings": "symbol date epsActual epsEstimated revenueActual revenueEstimated lastUpdated",
    "history": "symbol date open high low close volume change changePercent vwap",
    "news": "symbol publishedDate publisher title image site text url",
}


@pytest.fixture(scope="module")
def market() -> Market:
    return Market(seed=7, symbols=500)


@pytest.mark.parametrize("path", PATHS)
def test_every_path_has_exactly_the_fields_of_fmp(market: Market, path: str) -> None:
    """Names and order are those of facts/fmp.md, in every row."""
    rows = rows_of(market, path, ("AAPL",), NOON, {})
    assert rows
    assert {tuple(row) for row in rows} == {tuple(FIELDS[PATHS[path].name].split())}


@pytest.mark.parametrize("path", PATHS)
def test_the_same_seed_gives_the_same_bytes(path: str) -> None:
    """Another process with the same seed makes the same answer, whatever was asked before.

    Another seed makes another.
    """
    seed = random.randrange(1_000_000)
    symbols = Market(seed, 200).universe.symbols
    one, two, other = Market(seed, 200), Market(seed, 200), Market(seed + 1, 200)
    for _ in range(20):  # the second market has walked elsewhere before
        rows_of(two, "/stable/quote", (random.choice(symbols),), random.randrange(NOON), {})
    for _ in range(20):
        symbol, at = random.choice(symbols), NOON - random.randrange(10**7)
        bodies = [orjson.dumps(rows_of(each, path, (symbol,), at, {})) for each in (one, two, other)]
        assert bodies[0] == bodies[1], f"seed {seed}, {symbol} at {at}"
        assert bodies[0] != bodies[2], f"seed {seed}, {symbol} at {at}"


def test_prices_walk(market: Market) -> None:
    """Ticks differ a little, days more.

    A price stays above zero and between the day's low and high.
    """
    listing = market.listing("MSFT")
    assert listing is not None
    ticks = [market.price(listing, NOON + second) for second in range(600)]
    assert len(set(ticks)) > 10
    assert max(ticks) / min(ticks) < 1.05
    for day in range(200):
        [row] = rows_of(market, "/stable/quote", ("MSFT",), NOON - day * 86_400, {})
        assert 0 < row["dayLow"] <= row["price"] <= row["dayHigh"]
        assert row["yearLow"] <= row["price"] <= row["yearHigh"]
        assert row["timestamp"] == NOON - day * 86_400


def test_the_history_of_a_day_ends_where_the_next_day_says_it_ended(market: Market) -> None:
    """previousClose of today's quote is the close of yesterday's bar."""
    [row] = rows_of(market, "/stable/quote", ("AAPL",), NOON, {})
    newest, *_ = rows_of(market, "/stable/historical-price-eod/full", ("AAPL",), NOON, {})
    assert newest["date"] == "2025-11-13"
    assert newest["close"] == row["previousClose"]


def test_statements_add_up_and_appear_when_they_are_filed(market: Market) -> None:
    """Assets are liabilities and equity; no row is accepted after the instant that is asked."""
    [sheet, *_] = rows_of(market, "/stable/balance-sheet-statement", ("AAPL",), NOON, {})
    assert sheet["totalAssets"] == sheet["totalLiabilities"] + sheet["totalEquity"]
    [flow, *_] = rows_of(market, "/stable/cash-flow-statement", ("AAPL",), NOON, {})
    assert flow["cashAtEndOfPeriod"] - flow["cashAtBeginningOfPeriod"] == flow["netChangeInCash"]
    quarters = rows_of(market, "/stable/income-statement", ("AAPL",), NOON, {"period": "quarter", "limit": "8"})
    assert [row["period"] for row in quarters] == ["Q3", "Q2", "Q1", "Q4", "Q3", "Q2", "Q1", "Q4"]
    assert all(row["acceptedDate"] < "2025-11-14 12:00:00" for row in quarters)


def test_the_exchange_opens_and_closes_in_new_york() -> None:
    """A weekend and an early morning belong to the session before.

    Summer time moves the instants.
    """
    assert newest_session(NOON)[0].isoformat() == "2025-11-14"
    assert newest_session(NOON + 2 * 86_400)[0].isoformat() == "2025-11-14"
    assert newest_session(NOON - 6 * 3_600)[0].isoformat() == "2025-11-13"
    assert last_close(NOON) == NOON
    assert last_close(NOON + 86_400) == NOON + 4 * 3_600
    summer, winter = session(newest_session(NOON - 120 * 86_400)[0]), session(newest_session(NOON)[0])
    assert (summer[1] % 86_400, winter[1] % 86_400) == (13 * 3_600 + 1_800, 14 * 3_600 + 1_800)


# ── faults ──


def test_hostile_fires_every_family_ten_times_in_three_hundred_calls() -> None:
    """Dealt, not diced: true for every seed, with calls of all kinds mixed."""
    for seed in random.sample(range(10**6), 30):
        deck, fired = FaultDeck(hostile(), seed), Counter[str]()
        draw = random.Random(seed)
        for _ in range(300):
            has = ("time",) if draw.random() < 0.1 else ("number",) if draw.random() < 0.2 else ("time", "number")
            fault = deck.deal(has)
            assert fault is None or not fault.needs or fault.needs in has
            fired[fault.family if fault else "ok"] += 1
        assert min(fired[family] for family in FAMILIES) >= 10, f"seed {seed}: {fired}"
        assert fired["ok"] >= 60, f"seed {seed}: {fired}"


def test_the_members_of_a_family_take_turns() -> None:
    """Six kinds of Retry-After are six kinds, not one six times."""
    deck = FaultDeck({"rate_wall": 0.5}, seed=1)
    dealt = [fault.name for _ in range(60) if (fault := deck.deal(("time", "number")))]
    assert Counter(dealt[:24]) == {fault.name: 4 for fault in FAMILIES["rate_wall"]}


def test_faults_that_stop_a_client_can_be_left_out() -> None:
    """The rest of the family takes their turns, and the family's share stays."""
    shares = hostile(without=ACCOUNT_WALLS)
    deck = FaultDeck(shares, seed=1, never=STOPPING)
    fired = Counter(fault.name for _ in range(300) if (fault := deck.deal(("time", "number"))))
    assert not set(fired) & set(STOPPING)
    assert min(sum(fired[fault.name] for fault in FAMILIES[family]) for family in shares) >= 10


def test_shares_that_make_no_sense_are_refused() -> None:
    """An unknown fault, a share above one, too many families: each is said in words."""
    with pytest.raises(FaultRefused, match="there is no fault 'htlm'"):
        Knobs(faults={"htlm": 0.1})
    with pytest.raises(FaultRefused, match="more than 1"):
        Knobs(faults={"html": 0.6, "empty": 0.6})
    with pytest.raises(FaultRefused, match="do not fit into 100 calls"):
        hostile(calls=100)
    with pytest.raises(KnobsRefused, match="no knob 'tick'"):
        Knobs().changed({"tick": 1})
    with pytest.raises(KnobsRefused, match="tick_seconds=0"):
        Knobs(tick_seconds=0)
    with pytest.raises(KnobsRefused, match="locked_symbols: a list"):
        Knobs().changed({"locked_symbols": "TSLA"})
    with pytest.raises(KnobsRefused, match="sessions='no'"):
        Knobs().changed({"sessions": "no"})
    with pytest.raises(KnobsRefused, match="wrong type"):
        Knobs().changed({"calls_max": "many"})
    assert set(hostile(without=ACCOUNT_WALLS)) == set(FAMILIES) - set(ACCOUNT_WALLS)
    assert len(FAULTS) == sum(len(faults) for faults in FAMILIES.values())


def test_knobs_survive_the_way_through_json() -> None:
    """What the handle writes, the server reads."""
    knobs = Knobs().changed(
        {
            "faults": hostile(),
            "locked_symbols": ["TSLA"],
            "confined": [{"faults": {"bandwidth": 1.0}, "credentials": ["#1"], "paths": [], "symbols": []}],
        }
    )
    assert Knobs().changed(orjson.loads(orjson.dumps(knobs.as_json()))) == knobs


# ── limits ──


def test_the_window_is_sliding_and_half_open() -> None:
    """The sixth call waits for the first to be a whole window old; credentials do not share."""
    window, second = CallWindow(), 1_000_000_000
    assert [window.admit("a", at * second, 5, 60) for at in (0, 1, 2, 3, 4, 59)] == [True] * 5 + [False]
    assert window.admit("b", 59 * second, 5, 60)
    assert not window.admit("a", 60 * second - 1, 5, 60)
    assert window.admit("a", 60 * second, 5, 60)
    assert not window.admit("a", 60 * second, 5, 60)


def test_bandwidth_forgets_after_thirty_days() -> None:
    """Bytes of the trailing 720 hours count, older ones do not, and no more than those hours are kept."""
    bandwidth, now = Bandwidth(), time.time()
    for hour in range(2_000):
        bandwidth.book("a", now + hour * 3_600, 10)
    assert bandwidth.used("a", now + 1_999 * 3_600) == 7_200
    assert bandwidth.used("a", now + 5_000 * 3_600) == 0
    assert bandwidth.used("b", now) == 0


def test_strangers_cannot_fill_the_memory() -> None:
    """A million made-up keys are a thousand accounts and one for all others."""
    window = CallWindow()
    for number in range(5_000):
        window.admit(f"#{number}", number, 10**6, 60)
    assert len(window._admitted) <= 1_001


def test_every_dataset_is_reachable() -> None:
    """Eight kinds of data, nine paths."""
    assert (len(DATASETS), len(PATHS)) == (8, 9)


def test_what_is_said_of_a_year_holds_for_every_day_of_it(market: Market) -> None:
    """Nothing contradicts itself on one card.

    Seen failing: the chart showed 290.31 to 360.27, the quote said 295.18 to 355.89 of the year;
    Apple sold beverages.
    """
    for symbol in market.universe.symbols[:40]:
        [quote] = rows_of(market, "/stable/quote", (symbol,), NOON, {})
        days = rows_of(market, "/stable/historical-price-eod/full", (symbol,), NOON, {})
        if quote["yearLow"] is None:
            continue
        assert quote["yearLow"] <= min(day["low"] for day in days) <= quote["dayHigh"], symbol
        assert quote["yearHigh"] >= max(day["high"] for day in days) >= quote["dayLow"], symbol
        assert quote["yearHigh"] < 1.3 * max(day["high"] for day in days), symbol
    [profile] = rows_of(market, "/stable/profile", ("AAPL",), NOON, {})
    assert profile["industry"] == "Consumer Electronics"
