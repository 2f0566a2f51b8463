/**
 * Numbers, lengths of time, sizes and shares, letter by letter as livewell/words.py writes them (a test compares the two).
 * @module words
 */

const SPANS = [[86400, "d"], [3600, "h"], [60, "min"]];
const SIZES = [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"]];

/** With so many digits, 0 or 1. toFixed is exact but rounds a half up; Python rounds it to the even digit. */
function plain(value, digits) {
  const isHalf = Math.abs((value * 2 * 2 ** digits) % 2) === 1; // a half of the last digit that a binary number can hold
  if (!isHalf) return value.toFixed(digits);
  const scaled = value * 10 ** digits;
  const even = 2 * Math.round(scaled / 2);
  return (even / 10 ** digits).toFixed(digits);
}

const fixed = (value, digits) => plain(value, digits).replace(/\B(?=(\d{3})+(?!\d))/g, ",");

/** 12,345; 1.5. @param {?number} value */
export const number = (value) => (value == null ? "" : fixed(value, Number.isInteger(value) ? 0 : 1));

/** 3 s, 12 min, 2 h, 5 d. @param {?number} seconds */
export function span(seconds) {
  if (seconds == null) return "";
  for (const [size, unit] of SPANS) {
    if (Math.round((Math.abs(seconds) / size) * 100) / 100 >= 1) return `${plain(seconds / size, 0)} ${unit}`;
  }
  return Math.abs(seconds) >= 1 || seconds === 0 ? `${plain(seconds, 0)} s` : `${plain(seconds, 1)} s`;
}

/** 950 B, 1.2 MB, 20 GB. @param {?number} count */
export function size(count) {
  if (count == null) return "";
  for (const [least, unit] of SIZES) {
    if (Math.abs(count) >= least) return `${plain(count / least, 1)} ${unit}`.replace(".0 ", " ");
  }
  return `${plain(count, 0)} B`;
}

/** 97 %, 0.4 %, < 0.1 %. @param {?number} part */
export function share(part) {
  if (part == null) return "";
  if (part > 0 && part < 0.0005) return "< 0.1 %";
  return (part > 0 && part < 0.01) || (part > 0.99 && part < 1) ? `${plain(part * 100, 1)} %` : `${plain(part * 100, 0)} %`;
}
