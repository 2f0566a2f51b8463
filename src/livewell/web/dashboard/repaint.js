/**
 * Put a new panel in the place of the old one without disturbing its reader.
 *
 *     arrived ──nobody is busy in it──▶ in place: scroll, open rows and focus as before
 *        ├──a hand is on an act there, or below──▶ waits, HOLD_MS at most
 *        └──somebody types, has filled in a form, or has selected something there──▶ waits until that is over
 *
 * A panel that waits says so beside its time, and a newer one takes its place. What has the focus is found again by what it does, never by where it
 * stands: if it is gone the focus is dropped. When a hand has been held out for too long the rows may move under it, and for GUARD_MS its clicks are not
 * taken. At most one repaint in REPAINT_MS, however much arrives.
 * @module repaint
 */

import { element } from "./element.js";
import { keepPlots, plotAll } from "./plot.js";
import { setTime, zone } from "./times.js";

const REPAINT_MS = 250;
const HOLD_MS = 5000;
const GUARD_MS = 500; // a person needs 200 ms and more to see that a row is another one
const ACTS = "button, summary";
const FOCUSABLE = `a[href], ${ACTS}, .scroll, pre[tabindex]`;
const HELD_BY_HAND = " · newer data waits";
const HELD_BY_WORK = " · held back";
const CHANGED = " · the rows moved: nothing was done";

const waiting = new Map(); // id → { html (null: the page has no such panel any more), at: the instant if it is newer, held: since when for a hand }
let order = [];
let timer = 0;
let guarded = { until: 0, panel: null };

/** A panel as the server has just rendered it. @param {string} id @param {string} html */
export function arrived(id, html) {
  waiting.set(id, { html, at: null, held: waiting.get(id)?.held ?? null });
  timer ||= setTimeout(repaint, REPAINT_MS);
}

/** Which panels the page has now, from the top. @param {string[]} ids */
export function arrange(ids) {
  order = ids;
  for (const { id } of document.querySelectorAll(".panels > .panel")) if (!ids.includes(id)) arrived(id, null);
}

/** The panel was looked at again and is the same. @param {string} id @param {string} at */
export function seen(id, at) {
  const newer = waiting.get(id);
  if (newer) newer.at = at; // what is on the screen is older
  else setInstant(document.getElementById(id), at);
}

/** A stream begins: it sends every panel that is not among these hashes, so what waits is forgotten. @returns {string[]} */
export function begin() {
  waiting.clear();
  const panels = [...document.querySelectorAll(".panel[data-hash]")];
  panels.forEach((panel) => note(panel, ""));
  return panels.map((panel) => panel.dataset.hash);
}

function repaint() {
  timer = 0;
  const hand = handOn();
  for (const [id, newer] of waiting) {
    const old = document.getElementById(id);
    const isHeld = old && hand && isMoved(old, hand);
    newer.held = isHeld ? (newer.held ?? performance.now()) : null;
    if (old && isBusy(old)) {
      note(old, HELD_BY_WORK);
    } else if (isHeld && performance.now() - newer.held < HOLD_MS) {
      note(old, HELD_BY_HAND);
    } else {
      waiting.delete(id);
      put(id, old, newer);
      if (isHeld && hand.isPointer) guarded = { until: performance.now() + GUARD_MS, panel: id };
    }
  }
  if (waiting.size) timer = setTimeout(repaint, REPAINT_MS * 4);
}

/** The act that somebody points at, or has reached with the keyboard. */
function handOn() {
  const over = [...document.querySelectorAll(".panel :hover")].at(-1)?.closest("tr, li, form, details, .acts");
  if (over?.querySelector(ACTS)) return { at: over, isPointer: true };
  const focused = document.activeElement?.closest(".panel") && document.activeElement;
  return focused?.matches(ACTS) ? { at: focused, isPointer: false } : null;
}

/** A new panel moves what is in it; for the pointer also what is below it. */
function isMoved(panel, { at, isPointer }) {
  return panel.contains(at) || (isPointer && Boolean(panel.compareDocumentPosition(at) & Node.DOCUMENT_POSITION_FOLLOWING));
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

/** Beside the time of a panel. */
function note(panel, words) {
  const place = panel.querySelector(":scope > header .as-of");
  const old = place?.querySelector(".held");
  if (!words) old?.remove();
  else if (!old) place?.append(element("span.held", words));
  else if (old.textContent !== words) old.textContent = words;
}

function setInstant(panel, at) {
  const time = panel?.querySelector(":scope > header time");
  if (time) setTime(time, at);
}

function put(id, old, { html, at }) {
  if (html === null) return old?.remove();
  const made = new DOMParser().parseFromString(html, "text/html").body.firstElementChild;
  zone(made);
  if (at) setInstant(made, at);
  if (old) replace(old, made);
  else insert(id, made);
}

/** A panel that the page did not have, below the one that comes before it. */
function insert(id, made) {
  const above = order.slice(0, Math.max(0, order.indexOf(id))).findLast((one) => document.getElementById(one));
  if (above) document.getElementById(above).after(made);
  else document.querySelector(".panels").prepend(made);
  plotAll(made);
}

function replace(old, made) {
  carry(old, made, "summary", (before, after) => (after.parentElement.open = before.parentElement.open));
  keepPlots(old, made);
  const focused = old.contains(document.activeElement) ? document.activeElement : null;
  const successor = focused && successors(old, made, FOCUSABLE).get(focused);
  const scrolls = [...successors(old, made, ".scroll, pre")].map(([before, after]) => [after, before.scrollLeft, before.scrollTop]);
  old.replaceWith(made);
  for (const [after, left, top] of scrolls) [after.scrollLeft, after.scrollTop] = [left, top];
  plotAll(made);
  successor?.focus({ preventScroll: true });
}

/** What the reader did to an element is done to its successor. */
function carry(old, made, selector, act) {
  for (const [before, after] of successors(old, made, selector)) act(before, after);
}

/** From each element to the one that does the same in the new panel. Of several that do the same, each to the one in its order. */
function successors(old, made, selector) {
  const found = new Map();
  for (const after of made.querySelectorAll(selector)) {
    const name = identity(after);
    found.set(name, [...(found.get(name) ?? []), after]);
  }
  const pairs = new Map();
  for (const before of old.querySelectorAll(selector)) {
    const after = found.get(identity(before))?.shift();
    if (after) pairs.set(before, after);
  }
  return pairs;
}

/** What an element is for, wherever it stands. A button whose words, form or row are others is another button. */
function identity(one) {
  const row = one.closest("tr, li, [data-key]");
  return JSON.stringify([one.localName, row ? rowName(row) : "", ...purpose(one)]);
}

const rowName = (row) => row.dataset.key ?? row.querySelector("a[href]")?.getAttribute("href") ?? row.querySelector("th")?.textContent ?? "";

function purpose(one) {
  if (one.matches("a")) return [one.getAttribute("href")];
  if (one.matches("[data-copy]")) return [one.previousElementSibling.textContent];
  if (one.matches("button")) return [one.ariaLabel ?? one.textContent, sent(one.form)];
  if (one.matches("summary")) return [one.parentElement.dataset.key ?? one.textContent, sent(one.parentElement.querySelector("form"))];
  return [one.ariaLabel ?? ""];
}

/** Where a form goes, and what it says there by itself. */
function sent(form) {
  if (!form) return "";
  const hidden = [...form.querySelectorAll("input[type=hidden]")].filter(({ name }) => name !== "token");
  return [form.getAttribute("action"), ...hidden.map(({ name, value }) => `${name}=${value}`)].join("&");
}

/** A click that was aimed before the rows moved. The keyboard (detail 0) acts on what has the focus, which is the same as before. */
function guard(event) {
  const panel = event.target.closest?.(".panel");
  if (event.detail === 0 || panel?.id !== guarded.panel || performance.now() >= guarded.until) return;
  if (!event.target.closest(ACTS)) return;
  event.preventDefault();
  event.stopPropagation();
  note(panel, CHANGED);
}

document.addEventListener("click", guard, true);
