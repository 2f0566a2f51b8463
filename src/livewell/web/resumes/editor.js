/**
 * The editor of one document: a form, and beside it how page one will look.
 *
 *     opened ──typed──▶ changed ──saved──▶ saved as version n
 *                          └──somebody saved first──▶ conflict: theirs is loaded, or this one becomes the next version
 * @module editor
 */

import { ask } from "./ask.js";
import { element } from "./element.js";
import { Preview } from "./preview.js";
import { ResumeForm } from "./resume-form.js";

const EMPTY = { basics: { name: "" } };

/** One document in the room of the editor. */
export class Editor {
  #id = null;
  #version = null;
  #saved = "";
  #request = crypto.randomUUID?.() ?? String(Math.random()); // a document that is saved twice for a lost answer is one

  constructor(node, { say, options }) {
    this.node = node;
    this.say = say;
    this.options = options;
    this.isChanged = false;
  }

  /** @param {?string} id null for a new one */
  async open(id) {
    this.node.replaceChildren(element("p.muted", "The document is being read…"));
    let found = { name: "", document: structuredClone(EMPTY) };
    if (id) {
      try {
        found = await ask("GET", `/v1/resumes/${id}`);
      } catch (error) {
        const words = error.status === 404 ? "This document is not there, or it is not yours." : error.message;
        this.node.replaceChildren(element("div.head", element("h1", words)), element("p", element("a", { href: "#" }, "All documents")));
        return;
      }
    }
    this.#id = id;
    this.#version = found.version ?? null;
    this.#build(found);
    this.preview.now();
    if (!id) this.form.focus();
  }

  #build({ name, document: content }) {
    this.form = new ResumeForm(content, () => this.#touched(), this.say);
    this.preview = new Preview(() => this.#previewed(), (place, look) => this.form.show(place, look));
    this.name = element("input.document-name", { id: "document-name", maxlength: 200, "aria-label": "Name of the document", placeholder: "Name of the document" });
    this.name.value = name;
    this.name.addEventListener("input", () => this.#touched());
    this.state = element("p.muted", { role: "status" }, this.#version ? `Version ${this.#version}` : "Not saved yet");
    this.notice = element("div.notice", { role: "alert", hidden: "" });
    this.saving = element("button", { type: "button", onclick: () => this.save() }, "Save");
    const look = element("button.plain.look", { type: "button", onclick: () => lead(aside) }, "Page one");
    const bar = element("div.editor-bar", element("h1.unseen", this.#id ? "Edit a document" : "Write a document"), element("a.back", { href: "#" }, "All documents"), this.name, element("div.acts", this.state, look, this.saving));
    const template = element("select", { "aria-label": "Template of the preview" }, ...["minimal", "modern", "compact"].map((value) => element("option", { value }, value[0].toUpperCase() + value.slice(1))));
    template.value = this.options.quietly()?.template ?? "minimal";
    template.addEventListener("change", () => this.options.choose("template", template.value));
    const back = element("button.plain.look", { type: "button", onclick: () => lead(bar, this.name) }, "To the form");
    const aside = element("aside", { "aria-label": "Preview" }, element("header", { tabindex: -1 }, element("h2", "Page one"), element("div.acts", template, back)), this.preview.node);
    this.node.replaceChildren(bar, this.notice, element("div.editor", this.form.node, aside));
    this.node.addEventListener("keydown", this.#keys);
    this.stopListening = this.options.onChange(() => this.preview.soon());
    this.#saved = this.#content();
    this.isChanged = false;
  }

  #keys = (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "s") {
      event.preventDefault();
      this.save();
    }
  };

  #content() {
    return JSON.stringify([this.name.value.trim(), this.form.value()]);
  }

  #previewed() {
    const options = this.options.quietly();
    return options && { document: this.form.value(), options };
  }

  #touched() {
    this.isChanged = this.#content() !== this.#saved;
    this.state.textContent = this.isChanged ? "Not saved" : this.#version ? `Version ${this.#version}` : "Not saved yet";
    this.preview.soon();
  }

  /** Keep it as the next version. @returns {Promise<boolean>} */
  async save(over = this.#version) {
    const content = this.#content();
    const body = { document: this.form.value(), ...(this.name.value.trim() ? { name: this.name.value.trim() } : {}) };
    this.saving.disabled = true;
    this.notice.hidden = true;
    try {
      const made = this.#id ? await ask("PUT", `/v1/resumes/${this.#id}`, { ...body, version: over }) : await ask("POST", "/v1/resumes", { ...body, request: this.#request });
      this.#version = made.version;
      this.#saved = content;
      this.isChanged = this.#content() !== content;
      this.state.textContent = `Saved as version ${made.version}`;
      if (!this.#id) this.#nowKnown(made.id);
      return true;
    } catch (error) {
      if (error.status === 409) this.#conflict(error.problem.version);
      else this.#refused(error);
      return false;
    } finally {
      this.saving.disabled = false;
    }
  }

  // It has an address from now on; to go there again would build the form anew.
  #nowKnown(id) {
    this.#id = id;
    history.replaceState(null, "", `#edit/${id}`);
  }

  #conflict(version) {
    const load = element("button.plain", { type: "button", onclick: () => this.#reload() }, `Load version ${version}`);
    const keep = element("button.plain", { type: "button", onclick: () => this.save(version) }, "Keep mine as the next version");
    this.#tell("warn", `Somebody saved version ${version} meanwhile.`, element("div.acts", load, keep));
  }

  async #reload() {
    this.isChanged = false;
    this.#leaveQuietly();
    await this.open(this.#id);
  }

  #refused(error) {
    const place = error.place.replace(/^document\./, "");
    const lead = this.form.show(place, true) ? element("button.plain", { type: "button", onclick: () => this.form.show(place) }, "Show me where") : "";
    this.#tell("bad", `Not saved. ${place ? `${place}: ` : ""}${error.message}`, lead);
  }

  #tell(tone, words, more) {
    this.notice.dataset.tone = tone;
    this.notice.replaceChildren(element("span.dot"), element("span", words), more);
    this.notice.hidden = false;
  }

  /** Leave the room. False: the reader stays, and says first what becomes of what is not saved. */
  async leave() {
    if (!this.isChanged) {
      this.#leaveQuietly();
      return true;
    }
    const to = location.hash;
    history.replaceState(null, "", this.#id ? `#edit/${this.#id}` : "#new");
    const go = () => (location.hash = to || "#");
    const save = element("button.plain", { type: "button", onclick: async () => (await this.save()) && go() }, "Save it and leave");
    const drop = element("button.plain", { type: "button", onclick: () => ((this.isChanged = false), go()) }, "Leave without it");
    this.#tell("warn", "What you changed is not saved.", element("div.acts", save, drop));
    this.notice.scrollIntoView({ block: "nearest" });
    save.focus();
    return false;
  }

  #leaveQuietly() {
    this.preview?.stop();
    this.stopListening?.();
    this.node.removeEventListener("keydown", this.#keys);
  }
}

// On a narrow screen the form and the picture are below each other.
function lead(node, focus = node.querySelector("[tabindex]")) {
  node.scrollIntoView({ block: "start" });
  focus.focus({ preventScroll: true });
}
