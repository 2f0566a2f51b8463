/**
 * One stream for all tabs of a browser that are seen: a browser opens six connections to a server at most.
 *
 *     joined ──the lock is free──▶ leads: asks all tabs what they show ──gathered──▶ holds one stream of all of it, and tells them
 *        └──somebody leads──▶ follows: answers what it shows, is told
 *     either ──hidden, paused, closed──▶ lets go: its locks are free, and who waits for the first one leads
 *
 * Whoever comes, and a page that nobody shows any more, make another stream: which pages it has is in its address. Each tab says then what it shows,
 * and is sent what differs. Where the browser has neither locks nor channels (a page that came by plain http) each tab has a stream of its own.
 * @module share
 */

const NAME = `livewell pages ${new URL(import.meta.url).pathname}`; // with the fingerprint: two versions do not mix
const PAGES_MAX = 16; // as the server takes
const FULL = `This browser follows ${PAGES_MAX} pages of the dashboard; close or pause one of them.`;
const GATHER_MS = [50, 3200]; // for answers; the longer the more tabs were late
const ADDRESS_CHARS_MAX = 12_000; // of a head that may have 16,384

/**
 * Follow a page until the signal, or until that ends.
 * @param {string} page
 * @param {{shows: function(): string[], opened: function(), heard: function(), take: function(string, object)}} reader  shows: the hashes of its panels
 * @param {AbortSignal} signal
 * @returns {Promise<?{status: number, detail: string, seconds: number}>}  why it was refused; null: the network, or the server has gone
 */
export const follow = (page, reader, signal) => new Promise((done) => new Part(page, reader, signal, done));

const canShare = () => Boolean(globalThis.isSecureContext && navigator.locks && globalThis.BroadcastChannel);

/** What one tab has of the stream, from when it joins until it lets go. */
class Part {
  #page;
  #reader;
  #done;
  #id = Math.random().toString(36).slice(2);
  #over = new AbortController();
  #channel = null;
  #leads = false;
  #wants = new Map(); // of the tabs, while we lead: id → { page, has }
  #known = new Set(); // tabs whose end we wait for
  #streamed = []; // the pages of our stream
  #gathering = 0;
  #gatherMs = GATHER_MS[0];
  #stream = null;

  constructor(page, reader, signal, done) {
    [this.#page, this.#reader, this.#done] = [page, reader, done];
    signal.addEventListener("abort", () => this.#end(null), { once: true });
    if (!canShare()) {
      this.#leads = true;
      return void this.#gather();
    }
    this.#channel = new BroadcastChannel(NAME);
    this.#channel.onmessage = ({ data }) => this.#hear(data);
    // By the first lock whoever leads notices that we are gone, however we went; who holds the second leads.
    hold(`${NAME} ${this.#id}`, this.#over.signal, () => this.#want());
    hold(NAME, this.#over.signal, () => {
      this.#leads = true;
      this.#gather();
    });
  }

  #hear(message) {
    if (message.kind !== "want") return this.#told(message);
    if (!this.#leads) return;
    const { from, page, has } = message;
    if (!this.#known.has(from)) {
      this.#known.add(from);
      hold(`${NAME} ${from}`, this.#over.signal, () => this.#left(from), false);
    }
    if (this.#gathering) return void this.#wants.set(from, { page, has });
    if (!this.#streamed.includes(page) && this.#streamed.length === PAGES_MAX) return this.#refuse(page);
    if (message.asked) this.#gatherMs = Math.min(2 * this.#gatherMs, GATHER_MS[1]); // it was late: wait longer next time
    this.#gather();
  }

  #told({ kind, page, name, data, refusal }) {
    if (this.#over.signal.aborted) return;
    this.#reader.heard();
    if (kind === "ask") this.#want(true);
    if (kind === "open") this.#reader.opened();
    if (kind === "over") this.#end(refusal);
    if (kind !== "event" || (page ?? this.#page) !== this.#page) return;
    if (name === "refused") this.#end(data);
    else this.#reader.take(name, data);
  }

  /** To all tabs, and to our own. */
  #tell(message) {
    this.#channel?.postMessage(message);
    this.#told(message);
  }

  #want(asked = false) {
    const wants = { page: this.#page, has: this.#reader.shows() };
    if (this.#leads) this.#wants.set(this.#id, wants);
    else this.#channel.postMessage({ kind: "want", from: this.#id, asked, ...wants });
  }

  #left(from) {
    const page = this.#wants.get(from)?.page;
    this.#wants.delete(from);
    this.#known.delete(from);
    if (!this.#gathering && this.#streamed.includes(page) && !this.#pages().includes(page)) this.#gather();
  }

  #pages() {
    return [...new Set([...this.#wants.values()].map(({ page }) => page))];
  }

  /** The stream that was ends first, so that nothing of it comes after what a tab says that it shows. */
  #gather() {
    this.#stream?.abort();
    clearTimeout(this.#gathering);
    this.#wants.clear();
    this.#gathering = setTimeout(() => this.#open(), this.#channel ? this.#gatherMs : 0);
    this.#tell({ kind: "ask" });
  }

  async #open() {
    this.#gathering = 0;
    const stream = (this.#stream = new AbortController());
    const pages = this.#pages();
    this.#streamed = pages.splice(0, PAGES_MAX);
    pages.forEach((page) => this.#refuse(page));
    const refusal = await this.#read(this.#streamed, stream.signal).catch(() => null); // the network, or the server has gone
    if (this.#stream === stream && !stream.signal.aborted) this.#tell({ kind: "over", refusal });
  }

  async #read(pages, signal) {
    const answer = await fetch(this.#address(pages), { headers: { Accept: "text/event-stream" }, cache: "no-store", signal });
    if (!answer.ok) return refusal(answer);
    this.#tell({ kind: "open" });
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let text = ""; ; ) {
      const { value, done } = await reader.read();
      if (done || signal.aborted) return null;
      const frames = (text + value).split("\n\n");
      text = frames.pop();
      for (const frame of frames) {
        const [, name, data] = /^event: (\w+)\ndata: (.*)$/.exec(frame) ?? [];
        if (name && !signal.aborted) this.#event(pages, name, JSON.parse(data));
      }
    }
  }

  /** A page that is one too many, as the server refuses one. */
  #refuse(page) {
    this.#tell({ kind: "event", page, name: "refused", data: { status: 429, detail: FULL, seconds: 10 } });
  }

  #event(pages, name, { page, ...data }) {
    this.#tell({ kind: "event", page: pages[page], name, data });
  }

  #address(pages) {
    const part = (has) => pages.map((page) => `page=${encodeURIComponent(page)}&has=${has(page)}`).join("&");
    const full = `/v1/pages/stream?${part((page) => this.#shownByAll(page).join())}`;
    return full.length <= ADDRESS_CHARS_MAX ? full : `/v1/pages/stream?${part(() => "")}`;
  }

  /** Of one page the panels that each of its tabs shows. */
  #shownByAll(wanted) {
    const [first, ...others] = [...this.#wants.values()].filter(({ page }) => page === wanted).map(({ has }) => has);
    return first.filter((hash) => others.every((has) => has.includes(hash)));
  }

  #end(refusal) {
    if (this.#over.signal.aborted) return;
    clearTimeout(this.#gathering);
    this.#stream?.abort();
    this.#over.abort();
    this.#channel?.close();
    this.#done(refusal);
  }
}

/** Take a lock when it is free, and act then; keep it until the signal, or let go at once. */
function hold(name, signal, act, keep = true) {
  const held = async () => {
    act();
    if (keep && !signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve));
  };
  navigator.locks.request(name, { signal }, held).catch(() => {}); // the signal came first
}

/** The problem document of an answer; a proxy between may have answered something else. */
async function refusal(answer) {
  const problem = await answer.json().catch(() => ({}));
  const seconds = Number(answer.headers.get("Retry-After")) || 0;
  return { status: answer.status, detail: problem.detail ?? `the server answered ${answer.status}.`, seconds };
}
