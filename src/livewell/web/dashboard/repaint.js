/**
 * Put a new panel in the place of the old one without disturbing its reader.
 *
 *     arrived ──nobody is busy in it──▶ in place: scroll, open rows and focus as before
 *        └──somebody types, has filled in a form, or has selected something there──▶ waits; a newer one takes its place
 *
 * At most one repaint in REPAINT_MS, however much arrives.
 * @module repaint
 */

import { keepPlots, plotAll } from "./plot.js";
import { setTime, zone } from "./times.js";

const REPAINT_MS = 250;
const waiting = new Map(); // id → html
let timer = 0;

/** A panel as the server has just rendered it. @param {string} id @param {string} html */
export function arrived(id, html) {
  waiting.set(id, html);
  timer ||= setTimeout(repaint, REPAINT_MS);
}

/** The panel was looked at again and is the same. @param {string} id @param {string} at */
export function seen(id, at) {
  const time = document.querySelector(`#${CSS.escape(id)} > header time`);
  if (time) setTime(time, at);
}

function repaint() {
  timer = 0;
  for (const [id, html] of waiting) {
    const old = document.getElementById(id);
    if (old && isBusy(old)) continue;
    waiting.delete(id);
    if (old) replace(old, html);
  }
  if (waiting.size) timer = setTimeout(repaint, REPAINT_MS * 4);
}

function isBusy(panel) {
  const focused = document.activeElement;
  if (panel.contains(focused) && focused.matches("input, select, textarea")) return true;
  if ([...panel.querySelectorAll("input, select, textarea")].some(isChanged)) return true;
  const selection = getSelection();
  return !selection.isCollapsed && panel.contains(selection.anchorNode);
}

/** Somebody chose something else than what the page came with: a new panel would undo that unseen. */
function isChanged(control) {
  if (control instanceof HTMLSelectElement) {
    const given = [...control.options].findIndex((one) => one.defaultSelected);
    return control.options.length > 0 && control.selectedIndex !== Math.max(given, 0);
  }
  return control.value !== control.defaultValue || control.checked !== control.defaultChecked;
}

function replace(old, html) {
  const made = new DOMParser().parseFromString(html, "text/html").body.firstElementChild;
  zone(made);
  carry(old, made, "details", (before, after) => (after.open = before.open));
  keepPlots(old, made);
  const focused = place(old);
  const scrolls = [...old.querySelectorAll(".scroll, pre")].map((one) => [one.scrollLeft, one.scrollTop]);
  old.replaceWith(made);
  [...made.querySelectorAll(".scroll, pre")].forEach((one, at) => ([one.scrollLeft, one.scrollTop] = scrolls[at] ?? [0, 0]));
  plotAll(made);
  if (focused >= 0) made.querySelectorAll(FOCUSABLE)[focused]?.focus({ preventScroll: true });
}

const FOCUSABLE = "a[href], button, summary, .scroll";
const place = (panel) => [...panel.querySelectorAll(FOCUSABLE)].indexOf(document.activeElement);

/** What the reader did to an element is done to its successor, which has the same data-key or the same place. */
function carry(old, made, selector, act) {
  const before = [...old.querySelectorAll(selector)];
  made.querySelectorAll(selector).forEach((after, at) => {
    const found = after.dataset.key ? before.find((one) => one.dataset.key === after.dataset.key) : before[at];
    if (found) act(found, after);
  });
}
