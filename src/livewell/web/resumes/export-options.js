/**
 * How exports look: template, page, margin, quality, colour, standard. The choice is kept in this browser.
 * @module export-options
 */

import { element } from "./element.js";

const STORED = "livewell.export-options";
const CHOICES = [
  ["template", "Template", [["minimal", "Minimal"], ["modern", "Modern"], ["compact", "Compact"]]],
  ["page", "Page", [["Letter", "Letter"], ["A4", "A4"], ["Legal", "Legal"]]],
  ["quality", "Pictures", [["normal", "150 dpi"], ["draft", "96 dpi"], ["high", "300 dpi"]]],
  ["colour", "Colour", [["colour", "Colour"], ["grey", "Grey"]]],
  ["standard", "Standard", [["accessible", "Accessible (PDF/A, PDF/UA)"], ["plain", "Plain PDF"]]],
];
const MARGIN_MAX = 2;

/** The form with all of them; `value()` is what the API takes. */
export class ExportOptions {
  #listeners = new Set();

  constructor(form) {
    this.form = form;
    const had = stored();
    const fields = CHOICES.map(([name, label, choices]) => {
      const list = element("select", { name }, ...choices.map(([value, words]) => element("option", { value }, words)));
      list.value = choices.some(([value]) => value === had[name]) ? had[name] : choices[0][0];
      return element("label", label, list);
    });
    const margin = element("input", { name: "margin", type: "number", min: 0, max: MARGIN_MAX, step: 0.05, required: "", inputmode: "decimal" });
    margin.value = had.margin ?? "1";
    fields.splice(2, 0, element("label", "Margin, inches", margin));
    form.replaceChildren(element("h3", "How exports look"), element("div.filter.columns", ...fields));
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("input", () => this.#changed());
  }

  /** Called when a choice has changed. @returns {() => void} ends it */
  onChange(listener) {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** The options; null after the browser has said which field is wrong. */
  value() {
    if (!this.form.reportValidity()) return null;
    return this.#read();
  }

  /** The same without a word: for the preview, which keeps the last that was right. */
  quietly() {
    return this.form.checkValidity() ? this.#read() : null;
  }

  /** Choose a template from elsewhere. */
  choose(name, value) {
    this.form.elements.namedItem(name).value = value;
    this.#changed();
  }

  #read() {
    return Object.fromEntries(new FormData(this.form));
  }

  #changed() {
    if (!this.form.checkValidity()) return;
    try {
      localStorage.setItem(STORED, JSON.stringify(this.#read()));
    } catch {
      // storage is off or full: the choice lasts as long as the page
    }
    for (const listener of this.#listeners) listener();
  }
}

function stored() {
  try {
    return JSON.parse(localStorage.getItem(STORED) ?? "null") ?? {};
  } catch {
    return {}; // not ours, or storage is off
  }
}
