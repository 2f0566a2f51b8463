/**
 * Numbers and times as the market page writes them: the same number of digits everywhere, so that they line up.
 * @module format
 */

const NONE = "–";
const UNITS = [["T", 1e12], ["B", 1e9], ["M", 1e6], ["K", 1e3]];
const MINUS = "\u2212"; // as wide as a plus

const fixed = (digits) => new Intl.NumberFormat("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
const [WHOLE, ONE, TWO] = [fixed(0), fixed(1), fixed(2)];
const TODAY = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });
const UTC_DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric", timeZone: "UTC" });

const told = (value, write) => (value == null || value === "" || !Number.isFinite(Number(value)) ? NONE : write(Number(value)).replace("-", MINUS));

/** 1,234.50 */
export const price = (value) => told(value, (number) => TWO.format(number));

/** 924.5 B */
export const amount = (value) =>
  told(value, (number) => {
    const [unit, size] = UNITS.find(([, least]) => Math.abs(number) >= least) ?? ["", 1];
    return unit ? `${ONE.format(number / size)}\u202f${unit}` : WHOLE.format(number);
  });

/** 0.42; a ratio that nobody can form is no number. */
export const ratio = (value) => told(value, (number) => (Math.abs(number) >= 1000 ? "> 999" : TWO.format(number)));

/** 12.3 %, from a share */
export const percent = (value) => told(value, (number) => `${ONE.format(number * 100)}\u202f%`);

/** +12.3 % */
export const growth = (value) => told(value, (number) => `${number > 0 ? "+" : ""}${ONE.format(number * 100)}\u202f%`);

/** 45,946 */
export const count = (value) => told(value, (number) => WHOLE.format(number));

/** A share of something; nothing of nothing. */
export const share = (part, whole) => (part == null || !Number(whole) ? null : part / whole);

/** 15:59:58 today, 13 Feb 2026 otherwise, in the reader's zone. */
export function moment(time) {
  if (!time) return NONE;
  const at = new Date(time);
  return at.toDateString() === new Date().toDateString() ? TODAY.format(at) : DAY.format(at);
}

/** Both, for those who look closely. */
export function exactly(time) {
  if (!time) return NONE;
  const at = new Date(time);
  return `${DAY.format(at)}, ${TODAY.format(at)}`;
}

/** A calendar day, which has no zone. */
export const day = (date) => (date ? UTC_DAY.format(new Date(`${date}T00:00:00Z`)) : NONE);
