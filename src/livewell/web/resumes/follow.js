/**
 * How far exports are: a stream of the server, and questions at intervals where no stream can be had.
 *
 *     followed ──step──▶ told ──▶ followed          ──ended──▶ told for the last time
 *        └──no stream (refused, too many, cut for good)──▶ asked every 2 s, with the same numbers
 *
 * A browser opens few connections to one server, so only some are streamed; the others are asked for.
 * @module follow
 */

import { ask } from "./ask.js";

const STREAMS_MAX = 3;
const ASK_MS = 2000;
const ENDED = new Set(["finished", "failed", "cancelled", "deleted", "expired", "ended"]); // the last one is a batch's

/** Whether nothing more happens to an export. */
export const hasEnded = ({ state }) => ENDED.has(state);

/** Follows any number of exports and batches; each by its address, such as /v1/exports/<id>. */
export class Follower {
  #followed = new Map(); // address → { onNews, source }
  #asking = null;

  /** @param {string} path @param {(record: object) => void} onNews gets each record, until one says that all has ended */
  follow(path, onNews) {
    if (this.#followed.has(path)) return;
    const one = { onNews, source: null };
    this.#followed.set(path, one);
    if ([...this.#followed.values()].filter(({ source }) => source).length < STREAMS_MAX) this.#stream(path, one);
    this.#askOn();
  }

  unfollow(path) {
    this.#followed.get(path)?.source?.close();
    this.#followed.delete(path);
  }

  stop() {
    for (const path of [...this.#followed.keys()]) this.unfollow(path);
  }

  // The browser comes back by itself, with the number of the last step that it has seen.
  #stream(path, one) {
    one.source = new EventSource(`${path}/stream`);
    one.source.addEventListener("step", (event) => this.#news(path, JSON.parse(event.data)));
    one.source.addEventListener("bye", (event) => JSON.parse(event.data).reason === "ended" && this.#ask(path)); // else the browser comes back
    one.source.addEventListener("error", () => {
      if (one.source?.readyState !== EventSource.CLOSED) return;
      one.source = null;
      this.#askOn();
    });
  }

  #news(path, record) {
    const one = this.#followed.get(path);
    if (!one) return;
    one.onNews(record);
    if (hasEnded(record)) this.#ask(path); // for what is known only now: bytes, pages, when it expires
  }

  async #ask(path) {
    const one = this.#followed.get(path);
    if (!one) return;
    try {
      const record = await ask("GET", path);
      if (hasEnded(record)) this.unfollow(path);
      one.onNews(record);
    } catch (error) {
      if ([401, 403, 404, 410].includes(error.status)) this.unfollow(path);
      if (error.problem?.export) one.onNews(error.problem.export); // deleted elsewhere
    }
  }

  #askOn() {
    this.#asking ??= setTimeout(async () => {
      this.#asking = null;
      await Promise.all([...this.#followed].filter(([, { source }]) => !source).map(([path]) => this.#ask(path)));
      if (this.#followed.size) this.#askOn();
    }, ASK_MS);
  }
}
