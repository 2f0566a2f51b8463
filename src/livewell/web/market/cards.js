/**
 * The five cards of a symbol: what each needs, and how it shows it. The last three need the income statement, and share one subscription to it.
 *
 * draw(values, readings) gets the values by type, and is called only once the first of `needs` has one.
 * @module cards
 */

import { priceLine, yearBars } from "./chart.js";
import { element } from "./element.js";
import { amount, count, day, growth, percent, price, ratio, share } from "./format.js";

/** What the types are called on this page. */
export const TITLES = {
  quote: "Quote",
  end_of_day: "History",
  profile: "Profile",
  income_statement: "Income statement",
  balance_sheet_statement: "Balance sheet",
  cash_flow_statement: "Cash flow statement",
};

const facts = (kind, rows) => element(`dl.facts${kind}`, rows.map(([name, value]) => element("div", element("dt", name), element("dd", { title: value }, value))));
const figure = (value, unit) => element("p.big", value, unit ? element("small", unit) : null);
const latest = (rows) => rows?.at?.(-1);
const sameYear = (rows, row) => rows?.find?.((other) => other.date === row.date);
const year = (row) => `FY ${row.fiscal_year}`;

function quote({ quote: now, end_of_day: rows }) {
  const [change, rising] = [Number(now.change), Number(now.change) > 0];
  const arrow = change === 0 ? "■" : rising ? "▲" : "▼";
  const words = `${rising ? "up" : change < 0 ? "down" : "unchanged"} ${price(Math.abs(change))} today`;
  return [
    element(
      "div.price",
      element("p.big", { "data-watch": now.price }, price(now.price)),
      element("p.change", { "aria-label": words }, `${arrow} ${price(Math.abs(change))} (${price(Math.abs(now.change_percentage))}\u202f%)`),
    ),
    (rows?.length && priceLine(rows, now.price)) || null,
    facts(".two", [
      ["Day", `${price(now.day_low)} – ${price(now.day_high)}`],
      ["Volume", amount(now.volume)],
      ["Year", `${price(now.year_low)} – ${price(now.year_high)}`],
      ["Market cap", amount(now.market_cap)],
    ]),
  ];
}

function profile({ profile: row }) {
  return [
    element("p.big", { title: row.sector }, element("span.clip", row.sector ?? "–")),
    element("p.sub", { title: row.industry }, row.industry ?? ""),
    element("p.prose", { title: row.description }, row.description ?? ""),
    facts("", [
      ["Chief", row.ceo ?? "–"],
      ["Employees", count(row.full_time_employees)],
      ["Listed", day(row.ipo_date)],
    ]),
  ];
}

function revenue({ income_statement: rows }) {
  const [row, before] = [latest(rows), rows.at(-2)];
  return [
    figure(amount(row.revenue), row.reported_currency),
    element("p.sub", year(row)),
    yearBars(rows, (one) => Number(one.revenue), `Revenue of ${rows.length} years, the last ${amount(row.revenue)}`),
    facts("", [
      ["Growth", growth(before && share(row.revenue - before.revenue, Math.abs(before.revenue)))],
      ["Gross margin", percent(share(row.gross_profit, row.revenue))],
      ["Net margin", percent(share(row.net_income, row.revenue))],
    ]),
  ];
}

function solvency({ balance_sheet_statement: rows, income_statement: income }) {
  const row = latest(rows);
  const earned = sameYear(income, row);
  const owed = (one) => share(one.total_debt, one.total_stockholders_equity);
  return [
    figure(ratio(owed(row)), "debt to equity"),
    element("p.sub", year(row)),
    yearBars(rows, (one) => Number(owed(one)), `Debt to equity of ${rows.length} years, the last ${ratio(owed(row))}`),
    facts("", [
      ["Net debt", amount(row.net_debt)],
      ["Current ratio", ratio(share(row.total_current_assets, row.total_current_liabilities))],
      ["Interest cover", ratio(earned && share(earned.ebit, earned.interest_expense))],
    ]),
  ];
}

function cashUse({ cash_flow_statement: rows, income_statement: income }) {
  const row = latest(rows);
  const earned = sameYear(income, row);
  const paid = Number(row.net_dividends_paid) + Number(row.common_stock_repurchased);
  return [
    figure(amount(row.free_cash_flow), row.reported_currency),
    element("p.sub", `free, ${year(row)}`),
    yearBars(rows, (one) => Number(one.free_cash_flow), `Free cash flow of ${rows.length} years, the last ${amount(row.free_cash_flow)}`),
    facts("", [
      ["Of revenue", percent(earned && share(row.free_cash_flow, earned.revenue))],
      ["Invested", amount(row.capital_expenditure)],
      ["To owners", amount(Number.isFinite(paid) ? paid : null)],
    ]),
  ];
}

/** In the order of the page. */
export const CARDS = [
  { name: "quote", title: "Quote", needs: ["quote", "end_of_day"], draw: quote },
  { name: "profile", title: "Profile", needs: ["profile"], draw: profile },
  { name: "revenue", title: "Revenue", needs: ["income_statement"], draw: revenue },
  { name: "solvency", title: "Solvency", needs: ["balance_sheet_statement", "income_statement"], draw: solvency },
  { name: "cash", title: "Cash use", needs: ["cash_flow_statement", "income_statement"], draw: cashUse },
];
