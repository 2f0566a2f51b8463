/**
 * The list of documents: choose some, export, edit, delete.
 * @module my-documents
 */

import { ask } from "./ask.js";
import { element } from "./element.js";
import { setTime } from "./times.js";
import { size } from "./words.js";

const BATCH_MAX = 10;
const PAGE = 50;

/** The documents of whoever is logged in. */
export class Documents {
  #rows = [];
  #next = null;
  #chosen = new Set();

  constructor(node, { say, onChange, onExport, onEdit }) {
    this.node = node;
    this.say = say;
    this.onChange = onChange;
    this.onExport = onExport;
    this.onEdit = onEdit;
  }

  get count() {
    return this.#rows.length;
  }

  get hasMore() {
    return this.#next !== null;
  }

  async load() {
    await this.#page(null);
  }

  /** A resume.json of the reader's own. */
  async importFile(file) {
    try {
      const made = await ask("POST", `/v1/resumes/import?name=${encodeURIComponent(file.name.replace(/\.json$/i, "").slice(0, 200) || "Imported")}`, await file.text());
      this.say("Imported.");
      this.onEdit(made.id);
    } catch (error) {
      this.#trouble(`${file.name} was not imported. ${error.place ? `${error.place}: ` : ""}${error.message}`);
    }
  }

  async #page(after) {
    try {
      const found = await ask("GET", `/v1/resumes?limit=${PAGE}${after ? `&after=${encodeURIComponent(after)}` : ""}`);
      this.#rows = after ? [...this.#rows, ...found.items] : found.items;
      this.#next = found.next;
      const there = new Set(this.#rows.map(({ id }) => id));
      for (const id of [...this.#chosen]) if (!there.has(id)) this.#chosen.delete(id);
      this.#show();
    } catch (error) {
      if (error.status !== 401) this.#trouble(`Your documents could not be read. ${error.message}`);
    }
    this.onChange();
  }

  #show() {
    if (!this.#rows.length) {
      this.node.replaceChildren(element("p.empty-words", "Write one here, or import a resume.json: the format of jsonresume.org."));
      return;
    }
    const more = this.#next ? element("p.more", element("button.plain", { type: "button", onclick: () => this.#page(this.#next) }, "Show more")) : null;
    this.node.replaceChildren(element("ul.documents", ...this.#rows.map((row) => this.#row(row))), ...(more ? [more] : []), this.#batchBar());
  }

  #row(row) {
    const choose = element("input", { type: "checkbox", "aria-label": `Choose ${row.name}` });
    choose.checked = this.#chosen.has(row.id);
    choose.addEventListener("change", () => this.#choose(row, choose));
    const time = element("time");
    setTime(time, row.changed_at);
    const name = element("a.name", { href: `#edit/${row.id}` }, row.name);
    const asked = element("p.note", { role: "alert" });
    const run = element("button", { type: "button", "aria-label": `Export ${row.name}`, onclick: () => this.onExport([row], asked) }, "Export");
    const edit = element("a.button", { href: `#edit/${row.id}`, "aria-label": `Edit ${row.name}` }, "Edit");
    return element("li", choose, element("div.what", name, element("p.muted", `Version ${row.version}, ${size(row.bytes)}, changed `, time), asked), element("div.acts", run, edit, this.#deletion(row)));
  }

  #deletion(row) {
    const sure = element("button.danger", { type: "button", onclick: () => this.#delete(row) }, "Delete it");
    return element("details.confirm", element("summary", { "aria-label": `Delete ${row.name}…` }, "Delete…"), element("p", "All its versions go. What was exported of it stays until it expires."), sure);
  }

  #choose(row, choose) {
    if (choose.checked && this.#chosen.size >= BATCH_MAX) {
      choose.checked = false;
      this.say(`${BATCH_MAX} documents are the most in one batch.`);
    } else if (choose.checked) this.#chosen.add(row.id);
    else this.#chosen.delete(row.id);
    this.node.querySelector(".batch-bar").replaceWith(this.#batchBar());
  }

  #batchBar() {
    const n = this.#chosen.size;
    const bar = element("div.batch-bar");
    if (n < 2) {
      if (this.#rows.length > 1) bar.append(element("p.muted", `Choose up to ${BATCH_MAX} to export them together, with one ZIP.`));
      return bar;
    }
    const asked = element("p.note", { role: "alert" });
    const run = element("button", { type: "button", onclick: () => this.#exportChosen(asked) }, `Export ${n} together`);
    const none = element("button.plain", { type: "button", onclick: () => this.#unchoose() }, "Choose none");
    bar.append(run, none, asked);
    return bar;
  }

  async #exportChosen(place) {
    await this.onExport(this.#rows.filter(({ id }) => this.#chosen.has(id)), place);
    if (!place.textContent) this.#unchoose();
  }

  #unchoose() {
    this.#chosen.clear();
    this.#show();
  }

  async #delete(row) {
    try {
      await ask("DELETE", `/v1/resumes/${row.id}`);
      this.say(`${row.name} is deleted.`);
    } catch (error) {
      if (error.status !== 404) return this.#trouble(`${row.name} was not deleted. ${error.message}`);
    }
    const place = this.#rows.indexOf(row);
    await this.load();
    (this.node.querySelectorAll("a.name")[Math.min(place, this.count - 1)] ?? document.getElementById("new")).focus();
  }

  #trouble(words) {
    this.node.querySelector(".notice")?.remove();
    this.node.prepend(element("p.notice", { role: "alert", "data-tone": "bad" }, element("span.dot"), element("span", words)));
  }
}
