/**
 * The form of a résumé: what every one has, then sections with entries that can be added, moved and removed.
 *
 * The document is the truth; a field writes into it as somebody types, and only what has moved is
 * built anew, so the cursor stays where it is.
 * @module resume-form
 */

import { element } from "./element.js";
import { Photo } from "./photo.js";
import { BASICS, filled, read, SECTIONS, write } from "./resume-sections.js";

let numbers = 0;

/** A form that reads and writes one document. */
export class ResumeForm {
  #document;
  #sections = element("div.sections");
  #chips = element("div.chips");

  constructor(content, onChange, say) {
    this.#document = structuredClone(content);
    this.#document.basics ??= {};
    this.onChange = onChange;
    this.say = say;
    this.photo = new Photo(this.#document.basics, onChange);
    const own = BASICS.filter(({ top }) => !top);
    const grid = this.#fields(own, this.#document.basics, "basics");
    grid.append(...BASICS.filter(({ top }) => top).map((field) => this.#field(field, this.#document, field.name)));
    const basics = element("section.panel", { "aria-label": "About you" }, element("header", element("h2", "About you")), grid, this.photo.node);
    this.node = element("form.resume", { novalidate: "" }, basics, this.#sections, element("section.panel", { "aria-label": "More sections" }, element("header", element("h2", "More sections")), this.#chips));
    this.node.addEventListener("submit", (event) => event.preventDefault());
    this.#build();
  }

  focus() {
    this.node.querySelector("input").focus();
  }

  /** The document without empty fields; sections in the order of the form. */
  value() {
    return filled(this.#document) ?? {};
  }

  /** Lead to the field at a place such as work[2].summary; with `look` only say whether there is one. */
  show(place, look = false) {
    const parts = place.replace(/\[(\d+)\]/g, ".$1").split(".");
    for (let n = parts.length; n > 0; n -= 1) {
      const node = this.node.querySelector(`[data-place="${CSS.escape(parts.slice(0, n).join("."))}"]`);
      if (!node) continue;
      if (!look) {
        node.scrollIntoView({ block: "center" });
        (node.matches("input, textarea") ? node : (node.querySelector("input, textarea") ?? node)).focus({ preventScroll: true });
      }
      return true;
    }
    return false;
  }

  // -- sections --------------------------------------------------------------------------------------------------------

  get #order() {
    const there = Object.keys(SECTIONS).filter((name) => this.#entries(name) !== undefined);
    const fixed = there.filter((name) => SECTIONS[name].isFixed);
    const known = (this.#document.sections ?? []).filter((name) => there.includes(name));
    return [...fixed, ...known, ...there.filter((name) => !known.includes(name) && !fixed.includes(name))];
  }

  // Profiles and the summary are parts of the basics in JSON Resume; in the form they are sections like others.
  #home(name) {
    return name === "profiles" || name === "summary" ? this.#document.basics : this.#document;
  }

  #entries(name) {
    return this.#home(name)[name];
  }

  #put(name, entries) {
    this.#home(name)[name] = entries;
  }

  #build() {
    this.#sections.replaceChildren(...this.#order.map((name) => this.#section(name)));
    const missing = Object.keys(SECTIONS).filter((name) => this.#entries(name) === undefined);
    this.#chips.replaceChildren(...missing.map((name) => element("button.chip", { type: "button", onclick: () => this.#addSection(name) }, `+ ${SECTIONS[name].title}`)));
    this.#chips.parentElement.hidden = !missing.length;
  }

  #section(name) {
    const { title, one, text, isFixed } = SECTIONS[name];
    const heading = isFixed ? element("h2", title) : this.#heading(name, title);
    const moves = this.#moves(`the section ${title}`, isFixed ? null : (step) => this.#moveSection(name, step), () => this.#removeSection(name));
    const node = element("section.panel", { "aria-label": title, "data-section": name }, element("header", heading, moves));
    if (text) {
      node.append(this.#fields([text], this.#document.basics, "basics"));
      return node;
    }
    const add = element("button.plain", { type: "button", onclick: () => this.#addEntry(name) }, `Add a ${one}`.replace(/ a (?=[aeiou])/, " an "));
    node.append(element("ol.entries", ...this.#entries(name).map((entry, place) => this.#entry(name, entry, place))), add);
    return node;
  }

  #heading(name, title) {
    const heading = element("input.section-title", { "aria-label": `Title of the section ${title}`, placeholder: title, maxlength: 100, "data-place": `titles.${name}` });
    heading.value = this.#document.titles?.[name] ?? "";
    heading.addEventListener("input", () => {
      write(this.#document, `titles.${name}`, heading.value.trim());
      this.onChange();
    });
    return heading;
  }

  #entry(name, entry, place) {
    const { one, fields } = SECTIONS[name];
    const words = `${one} ${place + 1}`;
    const moves = this.#moves(words, (step) => this.#moveEntry(name, place, step), () => this.#removeEntry(name, place));
    const path = `${name === "profiles" ? "basics.profiles" : name}.${place}`;
    return element("li", { "data-place": path }, element("fieldset", element("legend.unseen", words), this.#fields(fields, entry, path), moves));
  }

  #moves(what, move, remove) {
    const arrow = (way, step, sign) => element("button.plain", { type: "button", "aria-label": `Move ${what} ${way}`, title: `Move ${way}`, onclick: () => move(step) }, sign);
    const arrows = move ? [arrow("up", -1, "↑"), arrow("down", 1, "↓")] : [];
    return element("div.moves", ...arrows, element("button.plain", { type: "button", "aria-label": `Remove ${what}`, onclick: remove }, "Remove"));
  }

  // -- acts --------------------------------------------------------------------------------------------------------------

  #addSection(name) {
    this.#put(name, SECTIONS[name].text ? "" : [{}]);
    this.#rebuilt(`${SECTIONS[name].title} added`);
    this.#find(name).querySelector(".grid input, .grid textarea")?.focus();
  }

  #removeSection(name) {
    const entries = this.#entries(name);
    this.#put(name, undefined);
    this.#rebuilt(`${SECTIONS[name].title} removed`);
    this.#chips.querySelector("button")?.focus();
    this.#offerBack(entries, this.#chips, `${SECTIONS[name].title} is removed.`, () => {
      this.#put(name, entries);
      this.#rebuilt(`${SECTIONS[name].title} is back`);
      this.#find(name).querySelector("input, textarea").focus();
    });
  }

  #moveSection(name, step) {
    const order = this.#order.filter((one) => !SECTIONS[one].isFixed);
    const from = order.indexOf(name);
    const to = from + step;
    if (to < 0 || to >= order.length) return;
    [order[from], order[to]] = [order[to], order[from]];
    this.#document.sections = order;
    this.#rebuilt(`${SECTIONS[name].title} is section ${to + 1} of ${order.length}`);
    this.#find(name).querySelectorAll("header .moves button")[step < 0 ? 0 : 1].focus();
  }

  #addEntry(name) {
    this.#entries(name).push({});
    this.#rebuild(name, `A ${SECTIONS[name].one} added`);
    this.#find(name).querySelector(".entries > li:last-child").querySelector("input, textarea").focus();
  }

  #moveEntry(name, place, step) {
    const entries = this.#entries(name);
    const to = place + step;
    if (to < 0 || to >= entries.length) return;
    [entries[place], entries[to]] = [entries[to], entries[place]];
    this.#rebuild(name, `Moved to place ${to + 1} of ${entries.length}`);
    this.#find(name).querySelectorAll(".entries > li")[to].querySelectorAll(".moves button")[step < 0 ? 0 : 1].focus();
  }

  #removeEntry(name, place) {
    const entries = this.#entries(name);
    const [entry] = entries.splice(place, 1);
    this.#rebuild(name, "Removed");
    this.#offerBack(entry, this.#find(name).querySelector(".entries"), `A ${SECTIONS[name].one} is removed.`, () => {
      entries.splice(place, 0, entry);
      this.#rebuild(name, "It is back");
      this.#find(name).querySelectorAll(".entries > li")[place].querySelector("input, textarea").focus();
    });
    const left = this.#find(name).querySelectorAll(".entries > li");
    (left[Math.min(place, left.length - 1)]?.querySelector("input, textarea") ?? this.#find(name).querySelector(":scope > button")).focus();
  }

  // What somebody had written can be had back, until the next thing is removed.
  #offerBack(content, place, words, undo) {
    this.node.querySelector(".undo")?.remove();
    if (filled(content) === undefined) return;
    place.after(element("p.undo.notice", words, element("button.plain", { type: "button", onclick: () => (this.node.querySelector(".undo").remove(), undo()) }, "Undo")));
  }

  #rebuild(name, said) {
    this.#find(name).replaceWith(this.#section(name));
    this.#told(said);
  }

  #rebuilt(said) {
    this.#build();
    this.#told(said);
  }

  #told(said) {
    this.say(said);
    this.onChange();
  }

  #find(name) {
    return this.#sections.querySelector(`[data-section="${name}"]`);
  }

  // -- fields ------------------------------------------------------------------------------------------------------------

  #fields(fields, entry, path) {
    return element("div.grid", ...fields.map((field) => this.#field(field, entry, `${path}.${field.name}`)));
  }

  #field({ name, label, kind, wide, half, hint, top, type = "text", ...more }, entry, place) {
    const id = `field-${(numbers += 1)}`;
    const about = hint ? { "aria-describedby": `${id}-hint` } : {};
    const had = read(entry, name);
    const input = kind === "line" ? element("input", { id, type, ...more, ...about, "data-place": place }) : element("textarea", { id, rows: kind === "list" ? 3 : 4, ...about, "data-place": place });
    input.value = Array.isArray(had) ? had.join("\n") : (had ?? "");
    input.addEventListener("input", () => {
      write(entry, name, kind === "list" ? input.value.split("\n").map((one) => one.trim()).filter(Boolean) : input.value.trim());
      this.onChange();
    });
    const width = wide ? "label.wide" : half ? "label.half" : "label";
    return element(width, { for: id }, element("span", label), input, hint ? element("small", { id: `${id}-hint` }, hint) : null);
  }
}
