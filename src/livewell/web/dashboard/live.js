/**
 * The stream of an open page.
 *
 *     following ──panel, seen──▶ repaint.js
 *        │  └──hidden tab, pause──▶ let go ──back──▶ following
 *        ├──away, back──▶ said
 *        └──dropped──▶ said, tried again with growing pauses
 * @module live
 */

import { arrived, seen } from "./repaint.js";

const RETRY_MS = [1000, 2000, 5000, 10000];

export class Live {
  #page;
  #words;
  #button;
  #source = null;
  #retry = 0;
  #tries = 0;
  #paused = false;

  /** @param {HTMLElement} box  with the page's address, a place for words and the button that pauses */
  constructor(box) {
    this.#page = box.dataset.page;
    this.#words = box.querySelector("#live-words");
    this.#button = box.querySelector("#pause");
    this.#button.hidden = false;
    this.#button.addEventListener("click", () => this.#pause(!this.#paused));
    document.addEventListener("visibilitychange", () => this.#follow());
    this.#follow();
  }

  #pause(paused) {
    this.#paused = paused;
    this.#button.textContent = paused ? "Go on" : "Pause";
    this.#button.setAttribute("aria-pressed", String(paused));
    this.#follow();
  }

  #letGo() {
    clearTimeout(this.#retry);
    this.#source?.close();
    this.#source = null;
  }

  #follow() {
    this.#letGo();
    if (this.#paused) return this.#say("Paused");
    if (document.hidden) return this.#say("");
    const source = (this.#source = new EventSource(`/v1/pages/stream?page=${encodeURIComponent(this.#page)}`));
    const on = (name, act) => source.addEventListener(name, (event) => act(event.data ? JSON.parse(event.data) : null));
    on("open", () => ((this.#tries = 0), this.#say("Live")));
    on("panel", ({ id, html }) => arrived(id, html));
    on("seen", ({ id, at }) => seen(id, at));
    on("away", () => this.#say("The database does not answer: nothing here is newer than its time says"));
    on("back", () => this.#say("Live"));
    on("bye", ({ reason }) => (reason === "rights" ? location.reload() : this.#again()));
    source.addEventListener("error", () => this.#again());
  }

  #again() {
    this.#letGo();
    this.#say("Not connected: nothing here is newer than its time says");
    const wait = RETRY_MS[Math.min(this.#tries++, RETRY_MS.length - 1)];
    this.#retry = setTimeout(() => this.#follow(), wait * (0.8 + Math.random() * 0.4));
  }

  #say(words) {
    if (this.#words.textContent !== words) this.#words.textContent = words;
  }
}
