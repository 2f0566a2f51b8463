/**
 * The market page: which symbols are watched, and the answer to its question: is it fresh?
 *
 * The list is kept in this browser (localStorage), and is the same in all its tabs.
 * @module market
 */

import { Card, VERDICTS } from "./card.js";
import { CARDS } from "./cards.js";
import { element } from "./element.js";
import { connect } from "./livewell.js";
import { offerCommand } from "./way-in.js";

const STORED = "livewell.market";
const FIRST = ["AAPL", "MSFT", "NVDA"];
const SUGGESTED = ["AAPL", "MSFT", "NVDA", "AMZN", "GOOGL", "META", "TSLA", "JPM"];
const SYMBOL = /^[A-Z0-9.^=-]{1,20}$/;
const SYMBOLS_MAX = 40;
const TICK_MS = 1000;
const WAITING = ["waiting", "refreshing"];
const LATE = ["failing", "stale", "lagging"];
const ASK_SECONDS_MAX = 3;
const TYPES_NAMED_MAX = 12;
const LINK = { connecting: "Connecting", live: "Live", away: "Database away", offline: "Offline", refused: "Not logged in" };

const lw = connect();
const at = (id) => document.getElementById(id);
const rows = new Map(); // symbol → Row, in the order of the page
let offlineSince = null;
let mayLook = false; // at the dashboard; until it is known there are no links

/** A symbol with its cards. */
class Row {
  #cards = new Map();
  #chips = element("div.chips");
  #name = element("small");
  #grid = element("div.cards");

  constructor(symbol, closed) {
    this.symbol = symbol;
    this.closed = new Set(closed);
    const remove = element("button.plain", { type: "button", "aria-label": `Remove ${symbol}`, onclick: () => take(this) }, "Remove");
    this.remove = remove;
    this.node = element("section.symbol", { "aria-label": symbol }, element("header", element("h2", symbol, this.#name), this.#chips, remove), this.#grid);
    this.show();
  }

  /** Cards that are not closed, in their order; a chip for each that is. */
  show() {
    for (const card of CARDS) {
      const open = this.#cards.get(card.name);
      if (this.closed.has(card.name)) {
        open?.remove();
        this.#cards.delete(card.name);
      } else if (!open) {
        const made = new Card(lw, this.symbol, card, { onReading: (reading) => this.#heard(reading), onClose: () => this.#close(card), href: keyPage });
        this.#cards.set(card.name, made);
        const after = CARDS.slice(CARDS.indexOf(card) + 1).map(({ name }) => this.#cards.get(name)?.node).find(Boolean);
        this.#grid.insertBefore(made.node, after ?? null);
      }
    }
    this.#gather();
    this.#chips.replaceChildren(...CARDS.filter(({ name }) => this.closed.has(name)).map((card) => element("button.chip", { type: "button", "aria-label": `Show ${card.title} of ${this.symbol}`, onclick: () => this.#open(card) }, `+ ${card.title}`)));
  }

  drop() {
    for (const card of this.#cards.values()) card.remove();
    this.node.remove();
  }

  tick() {
    for (const card of this.#cards.values()) card.tick();
  }

  /** Those that are seen. */
  get cards() {
    return [...this.#cards.values()].filter(({ node }) => !node.hidden);
  }

  #heard({ type, value }) {
    if (type === "quote" && value) this.#name.textContent = [value.name, value.exchange].filter(Boolean).join(" · ");
    this.#gather();
    summarise();
  }

  // Of a symbol that the source does not know one card speaks for all, whichever is open.
  #gather() {
    const all = [...this.#cards.values()];
    const speaker = all.some(({ known }) => known === "shown") ? undefined : all.find(({ known }) => known === "unknown");
    this.node.toggleAttribute("data-unknown", Boolean(speaker));
    for (const card of all) card.node.hidden = Boolean(speaker) && card !== speaker;
  }

  #close(card) {
    this.closed.add(card.name);
    this.show();
    keep();
    this.#chips.querySelector("button:last-child")?.focus();
    say(`${card.title} of ${this.symbol} closed`);
  }

  #open(card) {
    this.closed.delete(card.name);
    this.show();
    keep();
    this.#cards.get(card.name).node.querySelector(".close").focus();
  }
}

// -- the list --------------------------------------------------------------------------------------------------------

function stored() {
  try {
    const found = JSON.parse(localStorage.getItem(STORED) ?? "null");
    if (!Array.isArray(found)) return FIRST.map((symbol) => ({ symbol, closed: [] }));
    return found.filter((one) => typeof one?.symbol === "string" && Array.isArray(one.closed)).slice(0, SYMBOLS_MAX);
  } catch {
    return FIRST.map((symbol) => ({ symbol, closed: [] })); // not ours, or storage is off
  }
}

function keep() {
  try {
    localStorage.setItem(STORED, JSON.stringify([...rows.values()].map(({ symbol, closed }) => ({ symbol, closed: [...closed] }))));
  } catch {
    // storage is off or full: the list lasts as long as the page
  }
}

function arrange() {
  const wanted = stored();
  for (const row of [...rows.values()]) if (!wanted.some(({ symbol }) => symbol === row.symbol)) drop(row);
  for (const { symbol, closed } of wanted) {
    if (!rows.has(symbol)) rows.set(symbol, new Row(symbol, closed));
    const row = rows.get(symbol);
    row.closed = new Set(closed);
    row.show();
    at("list").append(row.node);
  }
  summarise();
}

function put(symbol) {
  const row = new Row(symbol, []);
  const before = [...rows];
  rows.clear();
  for (const [name, one] of [[symbol, row], ...before]) rows.set(name, one);
  at("list").prepend(row.node);
  keep();
  summarise();
  say(`${symbol} added`);
}

function drop(row) {
  row.drop();
  rows.delete(row.symbol);
}

function take(row) {
  const all = [...rows.values()];
  const next = all[all.indexOf(row) + 1] ?? all[all.indexOf(row) - 1];
  drop(row);
  keep();
  summarise();
  (next?.remove ?? at("symbol")).focus();
  say(`${row.symbol} removed`);
}

function refusal(symbol) {
  if (!symbol) return "Type a symbol first, for example TSLA.";
  if (!SYMBOL.test(symbol)) return "A symbol has letters, digits and . ^ = - only.";
  if (rows.has(symbol)) return `${symbol} is in the list already.`;
  return rows.size >= SYMBOLS_MAX ? `${SYMBOLS_MAX} symbols are the most; remove one first.` : "";
}

// Of one key on the dashboard; null for those who may not look there: no link leads to a refusal.
const keyPage = (type, key) => (mayLook ? `/types/${encodeURIComponent(type)}/${encodeURIComponent(key)}` : null);

// -- the answer ------------------------------------------------------------------------------------------------------

let summarising = false;

// At most once a frame, however many values arrive.
function summarise() {
  if (summarising) return;
  summarising = true;
  requestAnimationFrame(() => {
    summarising = false;
    conclude();
  });
}

function conclude() {
  if (document.body.hasAttribute("data-others")) return;
  const shown = [...rows.values()].flatMap(({ cards }) => cards);
  const counts = new Map();
  for (const { node } of shown) counts.set(node.dataset.verdict, (counts.get(node.dataset.verdict) ?? 0) + 1);
  const [text, tone] = answer(counts, shown.length);
  const heading = at("answer");
  if (heading.textContent !== text) heading.textContent = text;
  heading.dataset.tone = tone;
  document.title = rows.size ? `${text} · Livewell market` : "Livewell market";
  const order = Object.keys(VERDICTS).reverse().filter((verdict) => counts.has(verdict));
  at("counts").replaceChildren(...order.map((verdict) => element("li", { "data-tone": VERDICTS[verdict] ?? "none" }, element("span.dot"), element("span", element("b", counts.get(verdict)), ` ${offlineSince ? (counts.get(verdict) === 1 ? "was " : "were ") : ""}${verdict}`))));
  at("empty").hidden = rows.size > 0;
}

function answer(counts, all) {
  const number = (...verdicts) => verdicts.reduce((sum, verdict) => sum + (counts.get(verdict) ?? 0), 0);
  if (lw.state === "refused") return ["You are not logged in.", "none"];
  if (lw.state === "away") return [`Database away since ${offlineSince}.`, "bad"];
  if (lw.state === "offline") return [`Offline since ${offlineSince}.`, "bad"];
  if (!rows.size) return ["Nothing is watched.", "none"];
  if (!all) return ["Every card is closed.", "none"];
  if (number("waiting") === all) return ["Waiting for values…", "none"];
  const late = number(...LATE);
  // All that is not as it should be, so that the rest is.
  const parts = [
    [late, "is not fresh", "are not fresh"],
    [number(...WAITING), "is being fetched", "are being fetched"],
    [number("missing"), "has no value", "have no value"],
  ].filter(([n]) => n);
  const [first, ...more] = parts.map(([n, one, many], place) => `${n}${place ? "" : ` of ${all} ${all === 1 ? "card" : "cards"}`} ${n === 1 ? one : many}`);
  if (first) return [`${[first, ...more].join(", ")}.`, number("failing") ? "bad" : late ? "warn" : "none"];
  return [number("unverifiable") ? "Nothing is stale." : "Everything is fresh.", "fresh"];
}

function banner(state, problem) {
  const node = at("banner");
  const refused = state === "refused";
  node.hidden = !refused && !lw.since;
  node.toggleAttribute("data-calm", refused);
  at("banner-command").hidden = !refused;
  if (node.hidden) return;
  at("banner-title").textContent = refused ? "This browser has no login, or its login has ended." : "Nothing new arrives.";
  at("banner-words").textContent = refused ? "Print a login link where Livewell runs, and open it in this browser:" : `${problem ?? ""} What you see is from ${offlineSince}; the page tries again by itself.`.trim();
  if (refused) offerCommand(at("banner-command"));
}

function turned(state, problem) {
  offlineSince = lw.since?.toLocaleTimeString("en-GB") ?? null;
  document.body.toggleAttribute("data-held", Boolean(lw.since) || state === "refused");
  document.body.toggleAttribute("data-refused", state === "refused");
  at("link").dataset.state = state;
  at("link-words").textContent = LINK[state];
  banner(state, problem);
  if (state === "refused") console.info(problem);
  tick();
}

// Ages grow, and what has been refreshing for too long is stale.
function tick() {
  for (const row of rows.values()) row.tick();
  summarise();
}

function say(text) {
  at("said").textContent = text;
}

// -- what people do --------------------------------------------------------------------------------------------------

at("add").addEventListener("submit", (event) => {
  event.preventDefault();
  const input = at("symbol");
  const symbol = input.value.trim().toUpperCase();
  at("add-note").textContent = refusal(symbol);
  if (at("add-note").textContent) return;
  put(symbol);
  input.value = "";
});
at("symbol").addEventListener("input", () => (at("add-note").textContent = ""));
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest?.("input");
  if (event.key === "Escape" && typing) typing.value = at("add-note").textContent = "";
  if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  at("symbol").focus();
});
at("logout").addEventListener("click", async () => {
  const response = await fetch("/v1/logout", { method: "POST" }).catch(() => null);
  if (response?.ok || response?.status === 401) return location.reload();
  say("The server did not answer; you are still logged in.");
});
addEventListener("storage", (event) => event.key === STORED && arrange());
at("suggestions").append(...SUGGESTED.map((symbol) => element("button.chip", { type: "button", onclick: () => put(symbol) }, symbol)));
setInterval(() => document.hidden || tick(), TICK_MS);

// -- a server without the market -------------------------------------------------------------------------------------

// A document; an empty one if nobody can say: then the page is as it always is.
async function ask(path) {
  const response = await fetch(path, { signal: AbortSignal.timeout(ASK_SECONDS_MAX * 1000) }).catch(() => null);
  return response?.ok ? response.json().catch(() => ({})) : {};
}

function showOthers(types) {
  const [first] = types;
  const named = types.slice(0, TYPES_NAMED_MAX).join(", ") + (types.length > TYPES_NAMED_MAX ? ` and ${types.length - TYPES_NAMED_MAX} more` : "");
  document.body.toggleAttribute("data-others", true);
  document.title = at("brand").textContent = "Livewell";
  at("answer").textContent = first ? "This server keeps data of your own." : "No type of data is applied yet.";
  at("others-words").textContent = first
    ? `Applied: ${named}. This page shows the market that comes with Livewell, and that is not applied here. Look at a value in the terminal, or on a page of your own with /livewell.js:`
    : "A type file says where data comes from and how long it stays fresh. Apply one of your own, or the market that comes with Livewell, and load this page again:";
  at("others-command").textContent = first ? `livewell watch ${first} KEY` : "livewell types apply FILE\nlivewell types apply --app market";
  at("others").hidden = false;
}

const [{ items }, { scopes }] = await Promise.all([ask("/v1/types?limit=100"), ask("/v1/scopes")]);
const types = items?.map(({ name }) => name);
mayLook = ["observe", "operate"].some((scope) => scopes?.includes(scope));
at("overview").hidden = Boolean(scopes) && !mayLook;
if (types && !CARDS.some(({ needs }) => needs.some((type) => types.includes(type)))) showOthers(types);
else arrange();
lw.onState(turned);
