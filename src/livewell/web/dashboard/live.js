/**
 * What is done with the stream of an open page.
 *
 *     following ──order, panel, seen──▶ repaint.js
 *        │  ├──hidden tab, pause──▶ let go ──back──▶ following
 *        │  ├──away, back; failed, mended──▶ said
 *        │  ├──gone──▶ said, with where it is now; let go
 *        │  └──dropped, silent, busy, too many──▶ said, tried again with growing pauses
 *        └──login over, not allowed──▶ said; tried again when the tab is shown again
 *
 * The tabs of a browser share it (share.js). It is read with fetch: an EventSource does not say which status it was refused with, and follows a silent
 * connection for ever.
 * @module live
 */

import { element } from "./element.js";
import { arrange, arrived, begin, seen } from "./repaint.js";
import { follow } from "./share.js";

const RETRY_MS = [1000, 2000, 5000, 10000];
const OLD = "nothing here is newer than its time says";

export class Live {
  #page;
  #silenceMs;
  #words;
  #button;
  #lost = null; // ends the connection
  #retry = 0;
  #tries = 0;
  #paused = false;
  #away = false;
  #failed = null;

  /** @param {HTMLElement} box  with the page's address, a place for words and the button that pauses */
  constructor(box) {
    this.#page = box.dataset.page;
    this.#silenceMs = Number(box.dataset.silence) * 1000;
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
    this.#button.ariaLabel = `${this.#button.textContent}${paused ? " with" : ""} this page`;
    this.#button.setAttribute("aria-pressed", String(paused));
    this.#follow();
  }

  #letGo() {
    clearTimeout(this.#retry);
    this.#lost?.abort();
    this.#lost = null;
  }

  async #follow() {
    this.#letGo();
    if (this.#paused) return this.#say("Paused");
    if (document.hidden) return this.#say("");
    const lost = (this.#lost = new AbortController());
    const heard = silence(lost, this.#silenceMs);
    const opened = () => this.#tell(([this.#tries, this.#away, this.#failed] = [0, false, null]));
    const take = (name, data) => this.#acts[name]?.(data);
    const refused = await follow(this.#page, { shows: begin, opened, heard, take }, lost.signal); // null: the network, or the server has gone
    heard.stop();
    if (this.#lost !== lost) return; // let go, or follows anew
    this.#letGo();
    if (refused) this.#refused(refused);
    else this.#again(`Not connected: ${OLD}`);
  }

  #acts = {
    order: ({ ids }) => arrange(ids),
    panel: ({ id, html }) => arrived(id, html),
    seen: ({ id, at }) => seen(id, at),
    away: () => this.#tell((this.#away = true)),
    back: () => this.#tell((this.#away = false)),
    failed: ({ reason }) => this.#tell((this.#failed = reason)),
    mended: () => this.#tell((this.#failed = null)),
    gone: ({ reason, to }) => (this.#letGo(), this.#say(`No longer live: ${reason}`, to, "Go there")),
    bye: ({ reason }) => reason === "rights" && location.reload(),
  };

  #tell() {
    if (this.#away) this.#say(`The database does not answer: ${OLD}`);
    else if (this.#failed) this.#say(`This page cannot be read now, and ${OLD}: ${this.#failed}`);
    else this.#say("Live");
  }

  #refused({ status, detail, seconds }) {
    if (status === 401) return this.#say(`Your login is over: ${OLD}`, `/login?to=${encodeURIComponent(this.#page)}`, "Log in");
    if (status === 429) return this.#again(`Not live: ${detail}`, seconds);
    if (status >= 500) return this.#again(`The server is busy: ${OLD}`, seconds);
    this.#say(`Not live: ${detail}`);
  }

  #again(words, seconds = 0) {
    this.#say(words);
    const wait = Math.max(seconds * 1000, RETRY_MS[Math.min(this.#tries++, RETRY_MS.length - 1)]);
    this.#retry = setTimeout(() => this.#follow(), wait * (0.8 + Math.random() * 0.4));
  }

  #say(words, href = "", label = "") {
    if (this.#words.dataset.said === words + href) return; // a reader of the screen hears it once
    this.#words.dataset.said = words + href;
    this.#words.replaceChildren(words, ...(href ? [" ", element("a", { href }, label)] : []));
  }
}

/** The server says every few seconds that it is there: end a connection that says nothing for so long. */
function silence(lost, ms) {
  const over = () => lost.abort(new Error("silent"));
  let timer = setTimeout(over, ms);
  const heard = () => (clearTimeout(timer), (timer = setTimeout(over, ms)));
  heard.stop = () => clearTimeout(timer);
  return heard;
}
