/**
 * Instants in the reader's zone. The server writes <time datetime="…" title="… UTC">; UTC stays in the title.
 * @module times
 */

const TODAY = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const OTHER = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit" });
const YEAR = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit" });

/** 15:59:58 today, 13 Feb, 09:30:00 in this year, 13 Feb 2025, 09:30 otherwise. @param {Date} at */
export function moment(at, now = new Date()) {
  if (at.toDateString() === now.toDateString()) return TODAY.format(at);
  return at.getFullYear() === now.getFullYear() ? OTHER.format(at) : YEAR.format(at);
}

/** Write every time below an element in the reader's zone. @param {ParentNode} root */
export function zone(root) {
  for (const time of root.querySelectorAll("time[datetime]")) time.textContent = moment(new Date(time.dateTime));
}

/** Give one element another instant. @param {HTMLTimeElement} time @param {string} iso */
export function setTime(time, iso) {
  const at = new Date(iso);
  time.dateTime = iso;
  time.title = `${at.toISOString().slice(0, 19).replace("T", " ")} UTC`;
  time.textContent = moment(at);
}

/** The name of the reader's zone. */
export const zoneName = () => Intl.DateTimeFormat().resolvedOptions().timeZone;
