/**
 * One card: watches what it needs, draws it, and says how far it can be trusted.
 *
 *     waiting ──first value──▶ shown ──verdict turns──▶ shown, with what is wrong in words
 *        └──refused, or unknown to the source──▶ a sentence instead of figures
 * @module card
 */

import { TITLES } from "./cards.js";
import { element } from "./element.js";
import { exactly, moment } from "./format.js";
import { age, span, words } from "./livewell.js";

/** From the worst; what each looks like. refreshing: stale, but not for long enough to worry anybody; waiting: nobody has an answer yet. */
export const VERDICTS = { failing: "bad", missing: "none", stale: "warn", lagging: "warn", waiting: "none", refreshing: "none", unverifiable: "none", fresh: "fresh" };
const ORDER = Object.keys(VERDICTS);
const BROKEN = ["failing", "stale", "lagging"];
const REFRESHING_MS = 5000;

/** A card on the page; `closed` tells the server, through lw, when it is the last one that needs a key. */
export class Card {
  #stops;
  #readings = new Map();
  #staleSince = new Map();
  #body = element("div.body", element("p.nothing"));
  #foot = { dot: element("span.dot"), verdict: element("span.verdict"), when: element("span"), from: element("span.from"), problem: element("span.problem"), sources: element("div.sources") };
  #price;
  #href;

  /** href: (type, key) → the address of its page, or null. */
  constructor(lw, symbol, card, { onReading, onClose, href }) {
    this.card = card;
    this.#href = href;
    this.symbol = symbol;
    const { dot, verdict, when, from, problem, sources } = this.#foot;
    const close = element("button.close", { type: "button", "aria-label": `Close ${card.title} of ${symbol}`, title: "Close", onclick: () => onClose(this) }, "×");
    this.node = element(
      "article.card",
      { "data-card": card.name, "data-tone": "none", "aria-label": `${card.title} of ${symbol}` },
      element("header", element("h3", linked(card.title, href(card.needs[0], symbol), `Why is ${card.title} of ${symbol} as it is?`)), close),
      this.#body,
      element("div.foot-line", element("details", { ontoggle: () => this.tick() }, element("summary", dot, verdict, when, from, problem), sources)),
    );
    this.#stops = card.needs.map((type) =>
      lw.watch(type, symbol, (reading) => {
        this.#readings.set(type, reading);
        if (reading.verdict !== "stale") this.#staleSince.delete(type);
        else if (reading.turned) this.#staleSince.set(type, 0); // nobody refreshes it, as far as anybody can tell
        else if (!this.#staleSince.has(type)) this.#staleSince.set(type, Date.now());
        this.#draw();
        onReading(reading);
      }),
    );
    this.tick();
  }

  /** Stop watching and leave the page. */
  remove() {
    this.#stops.forEach((stop) => stop());
    this.node.remove();
  }

  /** Ages grow by themselves. */
  tick() {
    const all = this.card.needs.map((type) => this.#readings.get(type)).filter(Boolean);
    const worst = worstOf(all, (reading) => this.#shown(reading));
    const shown = worst ? this.#shown(worst) : "waiting";
    const { verdict, when, from, problem, sources } = this.#foot;
    const main = this.#readings.get(this.card.needs[0]);
    const empty = this.#body.querySelector(".nothing"); // it says what is wrong itself
    const broken = worst && !(empty && worst === main) && (BROKEN.includes(shown) || (worst.answer && this.#body.dataset.shown));
    this.node.dataset.tone = VERDICTS[shown] ?? "none";
    this.node.dataset.verdict = shown;
    const held = document.body.hasAttribute("data-held") && worst; // nobody can say what it is now
    write(verdict, worst?.answer ? "not watched" : held && shown !== "stale" ? `was ${shown}` : shown);
    write(when, worst?.checked_at ? `${span(age(worst))} ago` : "");
    write(from, worst?.source_at ? `source ${moment(worst.source_at)}` : worst?.verdict === "unverifiable" ? "source gives no time" : "");
    write(problem, broken ? (this.card.needs.length > 1 ? `${TITLES[worst.type]}: ` : "") + words(worst) : "");
    problem.title = problem.textContent;
    this.node.toggleAttribute("data-broken", Boolean(broken));
    if (empty) write(empty, main ? words(main) : "Waiting for the first value…");
    if (sources.parentNode.open) sources.replaceChildren(...all.map((reading) => source(reading, this.#href(reading.type, this.symbol), empty && main && sameNews(reading, main))));
  }

  /** Whether there is a value, or the source (or the server) says that there can be none: "shown", "unknown", or null while nobody knows. */
  get known() {
    const main = this.#readings.get(this.card.needs[0]);
    if (!main) return null;
    if (hasValue(main.value)) return "shown";
    return main.verdict === "missing" && (main.answer === "bad_key" || main.checked_at) ? "unknown" : null;
  }

  #shown({ type, verdict, checked_at, answer }) {
    if (verdict === "missing" && !checked_at && !answer) return "waiting";
    const held = document.body.hasAttribute("data-held"); // nobody refreshes anything
    return verdict === "stale" && !held && Date.now() - this.#staleSince.get(type) < REFRESHING_MS ? "refreshing" : verdict;
  }

  #draw() {
    const [main] = this.card.needs.map((type) => this.#readings.get(type));
    const values = Object.fromEntries([...this.#readings].map(([type, { value }]) => [type, value]));
    const shown = main && hasValue(main.value);
    if (shown) this.#body.dataset.shown = "yes";
    else delete this.#body.dataset.shown;
    this.#body.replaceChildren(...(shown ? this.card.draw(values).filter(Boolean) : [element("p.nothing")]));
    this.#flash();
    this.tick();
  }

  // A price that has changed is seen to have changed; nothing else moves.
  #flash() {
    const price = this.#body.querySelector("[data-watch]");
    if (price && this.#price !== undefined && this.#price !== price.dataset.watch) price.classList.add("changed");
    if (price) this.#price = price.dataset.watch;
  }
}

const hasValue = (value) => value != null && !(Array.isArray(value) && !value.length);

// The one that may be trusted least; of equal ones the first, which is what the card is about.
function worstOf(readings, shown) {
  const place = (reading) => ORDER.indexOf(shown(reading));
  return [...readings].sort((a, b) => place(a) - place(b))[0];
}

// Neither has a value, for the same reason: one sentence is enough.
const sameNews = (one, other) => !hasValue(one.value) && one.verdict === other.verdict && one.reason === other.reason && !one.checked_at === !other.checked_at;

// told: the card says the sentence already.
function source(reading, href, told) {
  const came = [["Source time", reading.source_at ? exactly(reading.source_at) : "not given"], ["Fetched", exactly(reading.fetched_at)], ["Confirmed", exactly(reading.checked_at)]];
  const rows = hasValue(reading.value) ? came : [["Asked", reading.checked_at ? exactly(reading.checked_at) : "no answer yet"]];
  return element("div", element("b", linked(TITLES[reading.type], href)), told ? null : element("p", words(reading)), element("dl", rows.flatMap(([name, value]) => [element("dt", name), element("dd", value)])));
}

// title: for the pointer; a screen reader hears it after the words.
const linked = (words, href, title = null) => (href ? element("a", { href, title }, words) : words);

// Only what differs is written, so that a screen reader and a selection are left in peace.
function write(node, text) {
  if (node.textContent !== text) node.textContent = text;
}
