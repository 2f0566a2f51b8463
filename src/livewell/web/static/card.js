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

/** From the worst; what each looks like. */
export const VERDICTS = { failing: "bad", missing: "none", stale: "warn", lagging: "warn", unverifiable: "none", fresh: "fresh" };
const ORDER = Object.keys(VERDICTS);
const BROKEN = ["failing", "stale", "lagging"];

/** A card on the page; `closed` tells the server, through lw, when it is the last one that needs a key. */
export class Card {
  #stops;
  #readings = new Map();
  #body = element("div.body", element("p.nothing", "Waiting for the first value…"));
  #foot = { dot: element("span.dot"), verdict: element("span.verdict"), when: element("span"), from: element("span.from"), problem: element("p.problem"), sources: element("div.sources") };
  #price;

  constructor(lw, symbol, card, { onReading, onClose }) {
    this.card = card;
    this.symbol = symbol;
    const { dot, verdict, when, from, problem, sources } = this.#foot;
    const close = element("button.close", { type: "button", "aria-label": `Close ${card.title} of ${symbol}`, title: "Close", onclick: () => onClose(this) }, "×");
    this.node = element(
      "article.card",
      { "data-card": card.name, "data-tone": "none", "aria-label": `${card.title} of ${symbol}` },
      element("header", element("h3", card.title), close),
      this.#body,
      element("div.foot-line", problem, element("details", element("summary", dot, verdict, when, from), sources)),
    );
    problem.hidden = true;
    this.#stops = card.needs.map((type) =>
      lw.watch(type, symbol, (reading) => {
        this.#readings.set(type, reading);
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
    const worst = worstOf(all);
    const { verdict, when, from, problem, sources } = this.#foot;
    const broken = worst && (BROKEN.includes(worst.verdict) || (worst.answer && this.#body.dataset.shown));
    this.node.dataset.tone = worst ? VERDICTS[worst.verdict] : "none";
    this.node.dataset.verdict = worst?.verdict ?? "waiting";
    write(verdict, worst ? (worst.answer ? "not watched" : worst.verdict) : "waiting");
    write(when, worst?.checked_at ? `${span(age(worst))} ago` : "");
    write(from, worst?.source_at ? `source ${moment(worst.source_at)}` : worst?.verdict === "unverifiable" ? "no source time" : "");
    write(problem, broken ? (this.card.needs.length > 1 ? `${TITLES[worst.type]}: ` : "") + words(worst) : "");
    problem.hidden = !broken;
    if (sources.closest("details").open || !sources.childNodes.length) sources.replaceChildren(...all.map(source));
  }

  #draw() {
    const [main] = this.card.needs.map((type) => this.#readings.get(type));
    const values = Object.fromEntries([...this.#readings].map(([type, { value }]) => [type, value]));
    const shown = main && hasValue(main.value);
    this.#body.toggleAttribute("data-shown", shown);
    if (shown) this.#body.dataset.shown = "yes";
    this.#body.replaceChildren(...(shown ? this.card.draw(values).filter(Boolean) : [element("p.nothing", main ? words(main) : "Waiting for the first value…")]));
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

/** The one that may be trusted least; of two equal ones the one that was checked longer ago. */
export function worstOf(readings) {
  const place = (reading) => ORDER.indexOf(reading.verdict);
  return [...readings].sort((a, b) => place(a) - place(b) || (age(b) ?? Infinity) - (age(a) ?? Infinity))[0];
}

function source(reading) {
  const rows = [
    ["Source time", reading.source_at ? exactly(reading.source_at) : "not given"],
    ["Fetched", exactly(reading.fetched_at)],
    ["Confirmed", exactly(reading.checked_at)],
  ];
  return element("div", element("b", TITLES[reading.type]), element("p", words(reading)), element("dl", rows.flatMap(([name, value]) => [element("dt", name), element("dd", value)])));
}

// Only what differs is written, so that a screen reader and a selection are left in peace.
function write(node, text) {
  if (node.textContent !== text) node.textContent = text;
}
