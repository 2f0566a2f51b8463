/**
 * Two small drawings: closing prices as a line, and yearly figures as bars. Black on white; the numbers stand beside them as text.
 * @module chart
 */

import { drawing, element } from "./element.js";
import { day, price } from "./format.js";

const DAYS = 90;
const YEARS_NAMED_MAX = 6;
const [WIDTH, HEIGHT] = [300, 96];

/**
 * The last 90 closing prices, and the present price as the last point.
 * @param {{date: string, close: number}[]} rows   by date
 * @param {?number} now
 */
export function priceLine(rows, now) {
  const shown = rows.slice(-DAYS);
  const closes = [...shown.map((row) => Number(row.close)), ...(now == null ? [] : [Number(now)])];
  if (closes.length < 2) return null;
  const [low, high] = [Math.min(...closes), Math.max(...closes)];
  const x = (place) => ((place / (closes.length - 1)) * WIDTH).toFixed(1);
  const y = (value) => (HEIGHT - 3 - ((value - low) / (high - low || 1)) * (HEIGHT - 6)).toFixed(1);
  const points = closes.map((value, place) => `${x(place)},${y(value)}`).join(" ");
  const words = `Closing prices from ${day(shown[0].date)}: lowest ${price(low)}, highest ${price(high)}`;
  return element(
    "div.chart",
    drawing(
      "svg",
      { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": words },
      drawing("polygon.area", { points: `0,${HEIGHT} ${points} ${WIDTH},${HEIGHT}` }),
      drawing("polyline.line", { points }),
    ),
    element("div.scale", element("span", price(high)), element("span", price(low))),
    element("div.span", element("span", day(shown[0].date)), element("span", now == null ? day(shown.at(-1).date) : "now")),
  );
}

/** Years as bars, the last one black. @param {{fiscal_year: string}[]} rows @param {function(object): number} figure @param {string} words */
export function yearBars(rows, figure, words) {
  if (rows.length < 2) return null;
  const values = rows.map(figure);
  const [low, high] = [Math.min(0, ...values), Math.max(0, ...values)];
  const size = (value) => (Math.abs(value) / (high - low || 1)) * 40;
  const zero = 42 - (Math.abs(low) / (high - low || 1)) * 40;
  const bars = values.map((value, place) => {
    const height = Math.max(1, size(value));
    return drawing("rect", { x: place * 20, width: 16, y: value < 0 ? zero : zero - height, height });
  });
  const named = rows.length <= YEARS_NAMED_MAX ? rows : [rows[0], rows.at(-1)];
  return element(
    "div.years",
    drawing("svg.bars", { viewBox: `0 0 ${values.length * 20 - 4} 44`, preserveAspectRatio: "none", role: "img", "aria-label": words }, bars),
    element("div.span", named.map(({ fiscal_year }) => element("span", String(fiscal_year ?? "")))),
  );
}
