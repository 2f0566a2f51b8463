/**
 * What was exported: how far each is, the files that are ready, and when they go.
 * @module my-exports
 */

import { ask } from "./ask.js";
import { element } from "./element.js";
import { Follower, hasEnded } from "./follow.js";
import { setTime } from "./times.js";
import { size, span } from "./words.js";

const PAGE = 50;
const STEPS = { 0: "waits for its turn", 25: "read", 50: "rendered", 75: "written as PDF", 90: "stored", 100: "ready" };
const TONES = { finished: "fresh", failed: "bad", cancelled: "none", deleted: "none", expired: "none" };
const REASONS = {
  unsupported_character: "It has a character that no font here can print.",
  bad_document: "The document does not fit the format any more.",
  bad_image: "A picture in it cannot be read.",
  no_title: "It needs a name: an accessible PDF has a title.",
  missing_alt_text: "The photo has no text that describes it; accessible PDFs need one.",
  template: "The template could not be set with it.",
  deadline: "It took too long to render.",
  memory: "It needed too much memory to render.",
  died: "The renderer ended before it was done.",
  store_unreachable: "The place for files could not be reached.",
  store_full: "The place for files is full.",
  too_large: "The file is larger than is allowed.",
  quota: "There was no room left for it.",
  document_gone: "The document was deleted meanwhile.",
  lost: "Its worker was lost too often.",
  cancelled: "It was cancelled.",
};

/** The exports of whoever is logged in. */
export class Exports {
  #rows = new Map(); // id → record, in the order of the page
  #next = null;
  #follower = new Follower();
  #notice = null;

  constructor(node, { say, onChange, onRoom }) {
    this.node = node;
    this.say = say;
    this.onChange = onChange;
    this.onRoom = onRoom;
  }

  get unfinished() {
    return [...this.#rows.values()].filter((row) => !hasEnded(row)).length;
  }

  async load(after = null) {
    try {
      const found = await ask("GET", `/v1/exports?limit=${PAGE}${after ? `&after=${encodeURIComponent(after)}` : ""}`);
      if (!after) this.#rows.clear();
      for (const row of found.items) this.#rows.set(row.id, { ...row, batch: row.batches?.[0] ?? null });
      this.#next = found.next;
      if (found.room) this.onRoom(`${size(found.room.bytes)} of ${size(found.room.bytes_max)} kept, ${found.room.today} of ${found.room.daily_max} today`);
      this.#show();
      this.#follow();
    } catch (error) {
      if (error.status !== 401) this.#trouble(`Your exports could not be read. ${error.message}`);
    }
    this.onChange();
  }

  stop() {
    this.#follower.stop();
  }

  /** Ask for some; what is refused is said beside the button. */
  async request(asked, options, place) {
    place.textContent = "";
    try {
      if (asked.length === 1) await ask("POST", "/v1/exports", { kind: "resume", ...asked[0], options });
      else await ask("POST", "/v1/exports/batch", { kind: "resume", documents: asked, options });
      this.say(asked.length === 1 ? "The export has begun." : `${asked.length} exports have begun.`);
    } catch (error) {
      place.textContent = error.message;
      return;
    }
    await this.load();
  }

  #follow() {
    for (const [batch, rows] of this.#batches()) {
      if (rows.some((row) => !hasEnded(row))) this.#follower.follow(`/v1/exports/batch/${batch}`, (record) => this.#newsOfBatch(record));
    }
    for (const row of this.#rows.values()) {
      if (!row.batch && !hasEnded(row)) this.#follower.follow(`/v1/exports/${row.id}`, (record) => this.#news(record));
    }
  }

  #batches() {
    const found = new Map();
    for (const row of this.#rows.values()) if (row.batch) found.set(row.batch, [...(found.get(row.batch) ?? []), row]);
    return found;
  }

  #news(record) {
    const row = this.#rows.get(record.id);
    if (!row) return;
    const before = row.state;
    Object.assign(row, record);
    this.#repaint(row);
    if (hasEnded(row) && before !== row.state) this.say(`${row.file_name}: ${stateWords(row)}.`);
    this.onChange();
  }

  #newsOfBatch(record) {
    for (const one of record.exports ?? []) if (this.#rows.has(one.id)) Object.assign(this.#rows.get(one.id), one);
    for (const one of record.exports ?? []) if (this.#rows.has(one.id)) this.#repaint(this.#rows.get(one.id));
    const head = this.node.querySelector(`[data-batch="${record.id}"] > header`);
    const rows = this.#batches().get(record.id);
    if (head && rows) head.replaceWith(this.#batchHead(record.id, rows));
    if (hasEnded(record)) this.say("The batch has ended.");
    this.onChange();
  }

  #show() {
    const shown = [];
    const seen = new Set();
    for (const row of this.#rows.values()) {
      if (!row.batch) shown.push(this.#item(row));
      else if (!seen.has(row.batch)) {
        seen.add(row.batch);
        const rows = this.#batches().get(row.batch).reverse(); // the newest is first, so the first of a batch is last
        shown.push(element("li.batch", { "data-batch": row.batch }, this.#batchHead(row.batch, rows), element("ul.exports", ...rows.map((one) => this.#item(one)))));
      }
    }
    const more = this.#next ? element("p.more", element("button.plain", { type: "button", onclick: () => this.load(this.#next) }, "Show more")) : null;
    this.node.replaceChildren(...(this.#notice ? [this.#notice] : []), shown.length ? element("ul.exports", ...shown) : element("p.empty-words", "Nothing was exported yet. A file is kept for some days, and its line here for a month more."), ...(more ? [more] : []));
    this.#notice = null;
  }

  #batchHead(batch, rows) {
    const ready = rows.filter(({ state }) => state === "finished").length;
    const busy = rows.some((row) => !hasEnded(row));
    const done = rows.reduce((sum, row) => sum + (hasEnded(row) ? 100 : row.progress), 0) / rows.length;
    const words = `${ready} of ${rows.length} ready`;
    const bar = busy ? element("progress", { max: 100, value: Math.round(done), "aria-label": `Batch of ${rows.length}` }) : null;
    const zip = ready ? element("a.button", { href: `/v1/exports/batch/${batch}/zip`, download: "" }, busy || ready < rows.length ? `ZIP of ${ready}` : "ZIP of all") : null;
    return element("header", element("h3", `${rows.length} together`), element("p.muted", words), bar, zip);
  }

  #item(row) {
    const node = element("li", { "data-export": row.id, "data-state": row.state });
    this.#fill(node, row);
    return node;
  }

  // A bar that is there already only moves: replaced, it would lose its transition and its place for readers.
  #repaint(row) {
    const node = this.node.querySelector(`[data-export="${row.id}"]`);
    if (!node) return;
    const bar = node.querySelector("progress");
    if (bar && !hasEnded(row)) {
      bar.value = row.progress;
      node.querySelector(".step").textContent = stateWords(row);
      return;
    }
    const hadFocus = node.contains(document.activeElement);
    node.dataset.state = row.state;
    this.#fill(node, row);
    if (hadFocus) node.querySelector("button, a")?.focus();
  }

  #fill(node, row) {
    const head = element("div.what", element("b", row.file_name), hasEnded(row) ? this.#ended(row) : moving(row));
    node.replaceChildren(head, element("div.acts", ...this.#acts(row)));
  }

  #ended(row) {
    const state = element("span.state", element("span.dot", { "data-tone": TONES[row.state] ?? "none" }), stateWords(row));
    const facts = [];
    if (row.state === "finished") facts.push(size(row.bytes), `${row.pages} ${row.pages === 1 ? "page" : "pages"}`, `${lasts(row.expires_at)}`, ...(row.downloads ? [`fetched ${row.downloads} ×`] : []));
    const at = element("time");
    setTime(at, row.finished_at ?? row.created_at);
    const why = row.reason && row.state === "failed" ? element("p.why", REASONS[row.reason] ?? "It could not be exported.", row.detail ? ` ${row.detail}` : "") : null;
    return element("div", element("p.muted", state, facts.length ? ` ${facts.join(", ")}` : "", " · ", `version ${row.version} · `, at), why);
  }

  #acts(row) {
    if (!hasEnded(row)) return [element("button.plain", { type: "button", "aria-label": `Cancel ${row.file_name}`, onclick: () => this.#cancel(row) }, "Cancel")];
    if (row.state !== "finished") return [];
    const fetchIt = element("button", { type: "button", "aria-label": `Download ${row.file_name}`, onclick: () => this.#download(row) }, "Download");
    const remove = element("button.plain", { type: "button", "aria-label": `Delete the file ${row.file_name}`, onclick: () => this.#delete(row) }, "Delete");
    return [fetchIt, remove];
  }

  async #download(row) {
    try {
      const link = await ask("POST", `/v1/exports/${row.id}/link`);
      location.assign(link.url);
      row.downloads = (row.downloads ?? 0) + 1;
      setTimeout(() => this.#repaint(row), 1000);
    } catch (error) {
      this.#trouble(`${row.file_name} cannot be fetched. ${error.message}`);
      if (error.status === 410 || error.status === 404) await this.load();
    }
  }

  async #cancel(row) {
    try {
      await ask("POST", `/v1/exports/${row.id}/cancel`);
    } catch (error) {
      this.#trouble(`${row.file_name} was not cancelled. ${error.message}`);
    }
    await this.load();
  }

  async #delete(row) {
    try {
      await ask("DELETE", `/v1/exports/${row.id}`);
      this.say(`The file ${row.file_name} is deleted.`);
    } catch (error) {
      this.#trouble(`${row.file_name} was not deleted. ${error.message}`);
    }
    await this.load();
  }

  #trouble(words) {
    this.#notice = element("p.notice", { role: "alert", "data-tone": "bad" }, element("span.dot"), element("span", words));
    this.#show();
  }
}

function moving(row) {
  return element("p.progress", element("progress", { max: 100, value: row.progress, "aria-label": `How far ${row.file_name} is` }), element("span.step.muted", stateWords(row)));
}

function stateWords(row) {
  if (row.state === "finished") return "ready";
  if (hasEnded(row)) return row.state;
  if (row.state === "waiting") return row.attempt > 1 ? "waits to be tried again" : "waits for its turn";
  return STEPS[row.progress] ?? `${row.progress} %`;
}

function lasts(instant) {
  if (!instant) return "";
  const seconds = (new Date(instant) - Date.now()) / 1000;
  return seconds > 0 ? `kept ${span(seconds)} more` : "expired";
}
