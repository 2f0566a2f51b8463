/**
 * livewell.js: watch values, and be told when they change. An ES module without dependencies.
 *
 *     import { connect, words } from "/livewell.js";
 *     const lw = connect();                                    // or connect({ url: "https://…", key: "lw_…" })
 *     const stop = lw.watch("quote", "AAPL", (reading) => {
 *       price.textContent = reading.value?.price ?? "–";
 *       note.textContent = words(reading);                     // "Fresh: checked 4 s ago."
 *     });
 *     stop();                                                  // the last one to stop ends the subscription
 *
 * Whoever watches the same key shares one subscription; all tabs of a browser share one stream:
 *
 *     hidden ──shown──▶ following the tab that leads ──its lock is free──▶ leading: session ▶ subscriptions ▶ stream
 *        ▲                    │                                              │  ▲                              │
 *        └──hidden for 10 s───┴──────────────────────────────────────────────┘  └──a pause of up to 30 s◀──lost┘
 *
 * After every reconnect the server sends the present state of everything that is watched: nothing is missed for good.
 *
 * Nothing stays fresh because nobody says otherwise: a reading says for how long its verdict holds, and when that is over and nothing newer has come, the verdict is turned here and the
 * listeners are told. That is counted on this machine's own clocks, so it holds without server, database and network, and after sleep; what the wall clock says does not matter.
 * @module livewell
 */

/**
 * What is known of a key at one instant. Times are RFC 3339 texts.
 * @typedef {object} Reading
 * @property {string} type
 * @property {string} key
 * @property {any} value           a row, a list of rows, or null when there is none; numbers beyond 15 digits are rounded by JSON.parse, see Options.numbers
 * @property {"fresh"|"stale"|"lagging"|"unverifiable"|"missing"|"failing"} verdict
 * @property {?string} source_at   what the source says of its own time
 * @property {?string} fetched_at  when this content was fetched
 * @property {?string} checked_at  when it was last confirmed
 * @property {?string} stale_at    until then the verdict holds, on the database's clock
 * @property {?number} fresh_for_seconds  how long that was when this arrived
 * @property {?number} age_seconds  how long ago it was last confirmed, when this arrived
 * @property {boolean} [turned]    its time was over and nothing newer had come: the verdict was turned here
 * @property {number} version      grows with the content
 * @property {number} status_version  grows with anything that is shown
 * @property {?string} reason      why the last attempt failed, if it did: a word of a closed list
 * @property {string} [answer]     only if it cannot be watched: unknown_type, bad_key, capped, cold_budget or forbidden; capped ends by itself when there is room
 */

/**
 * connecting, live, away (the server is there, its database is not), offline (tried again by itself), refused (the key or the login is not taken; tried again when the page is next shown).
 * @typedef {"connecting"|"live"|"away"|"offline"|"refused"} State
 */

/**
 * @typedef {object} Options
 * @property {string} [url]             the server; where this file came from, if not given
 * @property {string} [key]             a public API key, or a token of your own sign-in; without one the login cookie counts
 * @property {"number"|"string"} [numbers]  how numbers of values arrive: as JavaScript's, which have 15 digits, or as texts with all digits that are stored ("number")
 * @property {boolean} [share]          one stream for all tabs of this browser (true)
 * @property {number} [hiddenSeconds]   a tab that is hidden for so long lets go of everything (10)
 * @property {number} [silenceSeconds]  a stream that says nothing for so long is dead; the server speaks every 15 s (45)
 * @property {number} [lingerSeconds]   a key is kept for so long after the last one stops watching it (1)
 */

const PAUSE_SECONDS_MAX = 30;
const RETRY_AFTER_SECONDS_MAX = 300;
const PAIRS_MAX = 1000; // in one request
const FRAME_CHARS_MAX = 32_000_000;
const HOLDING = new Set(["fresh", "unverifiable", "lagging"]); // verdicts that end by the mere passing of time
const LOOK_MS = 250;
const GRACE_SECONDS = 0.5; // the server says when a verdict turns; so long after it, it is turned here
const REFUSED_FOR_NOW = new Set(["capped", "cold_budget"]); // asked for again with every heartbeat

/**
 * Connect to a Livewell server.
 * @param {Options} [options]
 * @returns {Client}
 */
export const connect = (options = {}) => new Client(options);

/** What a page holds: it takes part while the page can be seen, and leads or follows the other tabs. */
class Client {
  /** The connection, as it is now. @type {State} */
  state = "connecting";
  /** What went wrong last, in words. @type {?string} */
  problem = null;
  /** Since when it is away or offline. @type {?Date} */
  since = null;

  #options;
  #link;
  #watches = new Map(); // id → { pair, listeners, reading, leaving }
  #followers = new Map(); // tab → { keys, gone }
  #stateListeners = new Set();
  #tab = Math.random().toString(36).slice(2);
  #joined = null; // an AbortController while we take part
  #channel = null;
  #hiding = 0;
  #looking = 0;
  #events = new AbortController();

  constructor(options) {
    const defaults = { url: new URL(import.meta.url).origin, numbers: "number", share: true, hiddenSeconds: 10, silenceSeconds: 45, lingerSeconds: 1 };
    this.#options = { ...defaults, ...options };
    this.#link = new Link(this.#options, {
      wanted: () => this.#wanted(),
      arrived: (reading) => this.#arrived(reading),
      turned: (state, problem, seconds = 0) => this.#turned(state, problem, Date.now() - seconds * 1000),
    });
    this.#looking = setInterval(() => this.#age(), LOOK_MS);
    const on = (target, name, act) => target?.addEventListener?.(name, act, { signal: this.#events.signal });
    on(globalThis.document, "visibilitychange", () => this.#look());
    on(globalThis, "pagehide", () => this.#leave());
    on(globalThis, "pageshow", () => this.#look());
    on(globalThis, "online", () => this.#link.hurry());
    this.#look();
  }

  /**
   * Watch a key. The listener is told what is known already, and every change.
   * @param {string} type
   * @param {string} key
   * @param {function(Reading): void} listener
   * @returns {function(): void} stops it
   */
  watch(type, key, listener) {
    if (typeof type !== "string" || typeof key !== "string") throw new TypeError("watch(type, key, listener): type and key are texts");
    const id = idOf(type, key);
    const found = this.#watches.get(id);
    const watch = found ?? { pair: { type, key }, listeners: new Set(), reading: null, leaving: 0 };
    const one = { listener }; // the same function twice is two watchers
    watch.listeners.add(one);
    clearTimeout(watch.leaving);
    this.#watches.set(id, watch);
    if (!found) this.#changed();
    queueMicrotask(() => watch.reading && watch.listeners.has(one) && tell(listener, now(watch.reading)));
    return () => {
      if (!watch.listeners.delete(one) || watch.listeners.size) return;
      const letGo = () => this.#watches.delete(id) && this.#changed();
      watch.leaving = setTimeout(letGo, this.#options.lingerSeconds * 1000);
    };
  }

  /**
   * Be told the state of the connection, now and whenever it changes.
   * @param {function(State, ?string): void} listener
   * @returns {function(): void} stops it
   */
  onState(listener) {
    const one = { listener };
    this.#stateListeners.add(one);
    queueMicrotask(() => this.#stateListeners.has(one) && tell(listener, this.state, this.problem));
    return () => void this.#stateListeners.delete(one);
  }

  /** Let go of everything, for good. */
  close() {
    this.#events.abort();
    clearInterval(this.#looking);
    this.#leave();
  }

  // Timers are late in a tab that was hidden or asleep: whoever looks again is shown no verdict from before.
  #age() {
    for (const watch of this.#watches.values()) {
      const reading = watch.reading && now(watch.reading);
      if (reading && reading !== watch.reading) this.#show(watch, reading);
    }
  }

  #look() {
    this.#age();
    clearTimeout(this.#hiding);
    if (globalThis.document?.visibilityState !== "hidden") this.#join();
    else this.#hiding = setTimeout(() => this.#leave(), this.#options.hiddenSeconds * 1000);
  }

  async #join() {
    if (this.#joined) return;
    const { signal } = (this.#joined = new AbortController());
    if (!this.#options.share || !globalThis.isSecureContext || !navigator.locks || !globalThis.BroadcastChannel) return this.#link.start();
    const name = `livewell ${await digest(`${this.#options.url} ${this.#options.key ?? ""} ${this.#options.numbers}`)}`;
    if (signal.aborted) return;
    this.#channel = new BroadcastChannel(name);
    this.#channel.onmessage = ({ data }) => this.#heard(name, data);
    // By the first lock whoever leads notices that we are gone, however we went; who holds the second leads.
    hold(`${name} ${this.#tab}`, signal, () => this.#ask());
    hold(name, signal, () => {
      this.#link.start();
      this.#post({ kind: "lead" });
    });
  }

  #leave() {
    clearTimeout(this.#hiding);
    this.#joined?.abort();
    this.#joined = null;
    this.#link.stop();
    for (const { gone } of this.#followers.values()) gone.abort();
    this.#followers.clear();
    this.#channel?.close();
    this.#channel = null;
    this.#turned("connecting", null, null);
  }

  #heard(name, { kind, ...told }) {
    if (this.#link.running) return void (kind === "want" && this.#serve(name, told));
    if (kind === "lead") this.#ask();
    if (kind === "state") this.#turned(told.state, told.problem, told.since);
    if (kind === "readings" && (told.to ?? this.#tab) === this.#tab) told.readings.forEach((reading) => this.#arrived(heard(reading)));
  }

  #serve(name, { from, pairs }) {
    if (!this.#followers.has(from)) {
      const gone = new AbortController();
      this.#followers.set(from, { keys: new Map(), gone });
      hold(`${name} ${from}`, gone.signal, () => {
        gone.abort();
        this.#followers.delete(from);
        this.#changed();
      });
    }
    const keys = new Map(pairs.map((pair) => [idOf(pair.type, pair.key), pair]));
    this.#followers.get(from).keys = keys;
    this.#post({ kind: "state", state: this.state, problem: this.problem, since: this.since?.getTime() });
    this.#post({ kind: "readings", to: from, readings: [...keys.keys()].map((id) => this.#link.known.get(id)).filter(Boolean).map(told) });
    this.#changed();
  }

  #ask() {
    this.#post({ kind: "want", from: this.#tab, pairs: [...this.#watches.values()].map(({ pair }) => pair) });
  }

  #post(message) {
    this.#channel?.postMessage(message);
  }

  #wanted() {
    const theirs = [...this.#followers.values()].flatMap(({ keys }) => [...keys]);
    return new Map([...[...this.#watches].map(([id, { pair }]) => [id, pair]), ...theirs]);
  }

  #changed() {
    if (this.#link.running) this.#link.changed();
    else this.#ask();
  }

  #arrived(reading) {
    if (this.#link.running && this.#followers.size) this.#post({ kind: "readings", readings: [told(reading)] });
    const watch = this.#watches.get(idOf(reading.type, reading.key));
    if (watch) this.#show(watch, reading);
  }

  #show(watch, reading) {
    watch.reading = reading;
    for (const { listener } of [...watch.listeners]) tell(listener, reading);
  }

  #turned(state, problem, since) {
    if (this.state === state && this.problem === problem) return;
    const held = state === "away" || state === "offline";
    this.since = held ? (this.since ?? new Date(since ?? Date.now())) : null;
    [this.state, this.problem] = [state, problem];
    if (this.#link.running) this.#post({ kind: "state", state, problem, since: this.since?.getTime() });
    for (const { listener } of [...this.#stateListeners]) tell(listener, state, problem);
  }
}

/** One session and one stream, made again whenever they are lost. */
class Link {
  running = false;
  known = new Map(); // id → the latest reading
  #options;
  #page;
  #life = null; // another object after every start
  #lost = new AbortController(); // of the present connection
  #session = null;
  #beatSeconds = 60;
  #sent = new Set(); // ids that the server knows of
  #refused = new Set(); // of those, what it refused for now
  #agreeing = null;
  #least = Infinity; // seconds between the database's clock and ours, by the frame of this connection that came fastest
  #hurry = () => {};

  constructor(options, page) {
    [this.#options, this.#page] = [options, page];
  }

  start() {
    if (this.running) return;
    this.running = true;
    this.#run((this.#life = {}));
  }

  stop() {
    if (!this.running) return;
    this.running = false;
    this.#life = null;
    this.#lost.abort(new Error("stopped"));
    this.#hurry();
    if (this.#session) this.#call("DELETE", "", undefined, { keepalive: true, signal: null }).catch(() => {});
    this.#forget();
    this.known.clear();
  }

  /** Other keys are wanted now. */
  changed() {
    if (this.#session) this.#agree().catch((error) => this.#lost.abort(error));
  }

  /** The network is back: do not wait. */
  hurry() {
    this.#hurry();
  }

  async #run(life) {
    for (let failures = 0; this.#life === life; ) {
      const error = await this.#connection(() => (failures = 0)).catch((thrown) => thrown);
      if (this.#life !== life) return;
      if ([401, 403, 404].includes(error.status)) this.#forget(); // 404: no such session, or no longer; another one is opened
      if ([401, 403].includes(error.status)) return this.#page.turned("refused", error.message);
      this.#page.turned("offline", error.message);
      // Full jitter: a thousand browsers that lost one server must not come back in one instant.
      const seconds = Math.max(error.retryAfter ?? 0, Math.random() * Math.min(PAUSE_SECONDS_MAX, 2 ** failures++));
      await new Promise((resolve) => setTimeout((this.#hurry = resolve), seconds * 1000));
    }
  }

  async #connection(ready) {
    const lost = (this.#lost = new AbortController());
    let beating = 0;
    try {
      if (!this.#session) {
        const opened = await this.#call("POST", null, { session: globalThis.crypto?.randomUUID?.() });
        [this.#session, this.#beatSeconds] = [opened.session, opened.heartbeat_seconds ?? 60];
      }
      this.#sent.clear(); // what was lost on the way is said again; to say it twice does no harm
      await this.#agree();
      beating = setInterval(() => this.#beat(lost), this.#beatSeconds * 1000);
      await this.#read(lost, ready);
    } finally {
      clearInterval(beating);
      lost.abort(new Error("over"));
    }
  }

  #beat(lost) {
    for (const id of this.#refused) this.#sent.delete(id);
    this.#refused.clear();
    this.changed();
    // A server that cannot answer now still streams, and says so there.
    this.#call("PUT", "").catch((error) => [401, 403, 404].includes(error.status) && lost.abort(error));
  }

  #forget() {
    this.#session = null;
    this.#sent.clear();
    this.#refused.clear();
  }

  // One at a time, until the server knows exactly what is wanted.
  #agree() {
    return (this.#agreeing ??= this.#tellAll().finally(() => (this.#agreeing = null)));
  }

  async #tellAll() {
    for (;;) {
      await new Promise((resolve) => setTimeout(resolve)); // what is wanted in one go becomes one request
      const wanted = this.#page.wanted();
      const add = [...wanted].filter(([id]) => !this.#sent.has(id)).slice(0, PAIRS_MAX);
      const drop = [...this.#sent].filter((id) => !wanted.has(id)).slice(0, PAIRS_MAX);
      if (!this.#session || !(add.length || drop.length)) return;
      if (add.length) await this.#add(add.map(([, pair]) => pair));
      if (drop.length) await this.#call("DELETE", "/subscriptions", { subscriptions: drop.map(pairOf) });
      for (const id of drop) [this.#sent, this.#refused, this.known].forEach((all) => all.delete(id));
    }
  }

  async #add(pairs) {
    const half = Math.ceil(pairs.length / 2);
    const { subscriptions } = await this.#call("PUT", "/subscriptions", { subscriptions: pairs }).catch(async (error) => {
      if (![400, 413].includes(error.status)) throw error;
      // One that cannot even be asked for must not stand in the way of the others.
      if (half < pairs.length) for (const part of [pairs.slice(0, half), pairs.slice(half)]) await this.#add(part);
      return { subscriptions: half < pairs.length ? [] : [{ ...pairs[0], answer: "bad_key" }] };
    });
    for (const { type, key } of pairs) this.#sent.add(idOf(type, key));
    for (const { type, key, answer } of subscriptions) {
      if (answer === "subscribed") continue;
      if (REFUSED_FOR_NOW.has(answer)) this.#refused.add(idOf(type, key));
      this.#refuse(type, key, answer);
    }
  }

  #refuse(type, key, answer) {
    const nothing = { source_at: null, fetched_at: null, checked_at: null, stale_at: null, fresh_for_seconds: null, age_seconds: null, version: 0, status_version: 0, reason: null };
    this.#take({ type, key, answer, value: null, verdict: "missing", ...nothing });
  }

  // The stream does not follow this key for now; the server does so by itself when there is room. What was known of it stays, and ages as it would.
  #cap({ type, key }) {
    const id = idOf(type, key);
    const before = this.known.get(id);
    if (!before) return this.#refuse(type, key, "capped");
    const reading = { ...before, answer: "capped" };
    this.known.set(id, reading);
    this.#page.arrived(reading);
  }

  #take(frame) {
    const id = idOf(frame.type, frame.key);
    const before = this.known.get(id);
    const same = !("value" in frame) && before?.version === frame.version; // verified or failing: the value stands
    const reading = heard({ ...frame, value: same ? before.value : (frame.value ?? null) }, this.#late(frame, before));
    this.known.set(id, reading);
    this.#page.arrived(reading);
  }

  // Seconds that a frame was held up on its way: what a dead line kept for a minute is a minute older than it says. And an age that was shown is never taken back.
  #late(frame, before) {
    if (frame.age_seconds == null) return 0;
    const ahead = performance.now() / 1000 - Date.parse(frame.checked_at) / 1000 - frame.age_seconds;
    this.#least = Math.min(this.#least, ahead);
    const late = ahead - this.#least;
    const shown = before?.checked_at === frame.checked_at ? age(before) - frame.age_seconds : 0;
    return shown > late && shown < late + JITTER_SECONDS ? shown : late;
  }

  async #read(lost, ready) {
    this.#least = Infinity;
    let silence = 0;
    const alive = () => {
      clearTimeout(silence);
      silence = setTimeout(() => lost.abort(new Error("The server has gone silent.")), this.#options.silenceSeconds * 1000);
    };
    alive();
    try {
      const response = await this.#fetch("GET", this.#options.numbers === "string" ? "/stream?numbers=string" : "/stream", undefined, { signal: lost.signal });
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let text = ""; ; alive()) {
        const { done, value } = await reader.read().catch((error) => {
          throw error instanceof TypeError ? new Error("The connection to the server was lost.") : error; // each browser has words of its own
        });
        if (done) throw new Error("The server ended the stream.");
        const frames = (text + value.replaceAll("\r", "")).split("\n\n");
        text = frames.pop();
        if (text.length > FRAME_CHARS_MAX) throw new Error("The server sent more than fits.");
        for (const frame of frames) this.#event(frame.split("\n"), ready);
      }
    } finally {
      clearTimeout(silence);
    }
  }

  #event(lines, ready) {
    const field = (name) => lines.filter((line) => line.startsWith(`${name}:`)).map((line) => line.slice(name.length + 1).trimStart());
    const [name] = field("event");
    if (name === "reading") this.#take(JSON.parse(field("data").join("\n")));
    if (name === "capped") this.#cap(JSON.parse(field("data").join("\n")));
    if (name === "ready") ready();
    if (name === "ready") this.#page.turned("live", null);
    if (name === "away") this.#page.turned("away", "The server has lost its database.", JSON.parse(field("data").join("\n")).seconds);
    if (name === "back") this.#page.turned("live", null);
    if (name !== "bye") return;
    const { reason } = JSON.parse(field("data").join("\n"));
    if (reason === "session" || reason === "replaced") this.#forget();
    throw new Error(`The server ended the stream (${reason}).`);
  }

  async #call(method, path, body, more) {
    const response = await this.#fetch(method, path, body, { signal: this.#lost.signal, ...more });
    return response.status === 204 ? null : response.json();
  }

  async #fetch(method, path, body, more) {
    const { url, key } = this.#options;
    const place = path === null ? "/v1/sessions" : `/v1/sessions/${this.#session}${path}`;
    const headers = { ...(key && { Authorization: `Bearer ${key}` }), ...(body && { "Content-Type": "application/json" }) };
    const credentials = key ? "omit" : "same-origin";
    const sent = { method, headers, credentials, cache: "no-store", body: body && JSON.stringify(body), ...more };
    const response = await fetch(url.replace(/\/+$/, "") + place, sent).catch((error) => {
      throw error instanceof TypeError ? new Error("The server cannot be reached.") : error;
    });
    if (response.ok) return response;
    const told = await response.json().catch(() => ({}));
    const retryAfter = Math.min(Number(response.headers.get("Retry-After")) || 0, RETRY_AFTER_SECONDS_MAX);
    const { status } = response;
    throw Object.assign(new Error(told.detail ?? told.title ?? `The server answered ${status}.`), { status, retryAfter });
  }
}

const idOf = (type, key) => JSON.stringify([type, key]);
const pairOf = (id) => (([type, key]) => ({ type, key }))(JSON.parse(id));

// When it was heard, on both clocks: the first stands still in some browsers while the machine sleeps, the second may be set. What more time has passed on counts: too early stale does no harm.
// A symbol, so that a copy of a reading has it, too.
const HEARD = Symbol("heard");
const JITTER_SECONDS = 5;

const heard = (reading, late = 0) => Object.assign(reading, { [HEARD]: { clock: performance.now() - late * 1000, wall: Date.now() - late * 1000 } });

function elapsed(reading) {
  const { clock, wall } = (reading[HEARD] ? reading : heard(reading))[HEARD];
  return Math.max(0, performance.now() - clock, Date.now() - wall) / 1000;
}

// For another tab, which has clocks of its own.
const told = (reading) => ({ ...reading, fresh_for_seconds: left(reading), age_seconds: age(reading) });

const left = (reading) => (reading.fresh_for_seconds == null ? null : reading.fresh_for_seconds - elapsed(reading));

// A listener that throws is the page's own fault, and must not keep the others from hearing.
function tell(listener, ...what) {
  try {
    listener(...what);
  } catch (error) {
    globalThis.reportError?.(error);
  }
}

// Hold a lock from when it is free until the signal; act once it is ours.
function hold(name, signal, act) {
  const held = async () => {
    act();
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve));
  };
  navigator.locks.request(name, { signal }, held).catch(() => {}); // the signal came first
}

async function digest(text) {
  const bytes = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
  return [...bytes.slice(0, 12)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

// -- in plain words ------------------------------------------------------------------------------------------------------

// The words of refresh/reasons.py; a test compares them.
const REASONS = {
  "The source did not answer in time": "deadline",
  "The source cannot be reached": "connection tls transient",
  "The source answered with an error": "status error_object",
  "The source answered with something that is not data": "not_json not_utf8 html content_type wrong_shape",
  "The source's answer was cut off": "truncated",
  "The source's answer was too large": "too_large bomb too_deep",
  "The source's answer was empty": "empty",
  "The source's answer does not fit what was agreed": "missing_field wrong_type out_of_bounds bad_number bad_text duplicate_row",
  "The source answered about something else": "wrong_key",
  "The source's answer has an impossible time": "no_source_time future_source",
  "The source answered with something older": "older",
  "The source allows no more calls for now": "rate_wall bandwidth_wall",
  "The source does not give this under the present plan": "entitlement_key entitlement_type legacy_path",
  "The source does not accept our account": "auth suspended",
  "The source's address is not allowed here": "refused_address",
  "What is asked for has just been changed": "type_changed",
};
const CAUSES = Object.fromEntries(Object.entries(REASONS).flatMap(([text, all]) => all.split(" ").map((word) => [word, text])));
const ANSWERS = {
  unknown_type: "The server has no such type of data.",
  bad_key: "There can be no such key.",
  capped: "As much is watched from here as may be; this has to wait.",
  cold_budget: "You have asked for many new keys; this one has to wait a minute.",
  forbidden: "You may not see this.",
};

/** Seconds since a value was last confirmed; null if it never was. It only grows, whatever becomes of clocks and connection. @param {Reading} reading @returns {?number} */
export function age(reading) {
  if (!reading.checked_at) return null;
  const passed = elapsed(reading);
  return passed + (reading.age_seconds ?? Math.max(0, (reading[HEARD].wall - Date.parse(reading.checked_at)) / 1000));
}

/** A reading with the verdict that it has by now: itself, or stale if its time is over and nothing newer has come. watch() tells that by itself; this is for whoever keeps readings. @param {Reading} reading @returns {Reading} */
export function now(reading) {
  if (!HOLDING.has(reading.verdict) || left(reading) === null || left(reading) > -GRACE_SECONDS) return reading;
  return { ...reading, verdict: "stale", turned: true, stale_at: null, fresh_for_seconds: null };
}

/** A number of seconds in words: "4 s", "3 min", "2 h", "5 days". @param {number} seconds @returns {string} */
export function span(seconds) {
  const [unit, one] = [["s", 1, 0], ["min", 60, 90], ["h", 3600, 7200], ["days", 86400, 172_800]].findLast(([, , from]) => seconds >= from) ?? ["s", 1];
  return `${Math.floor(seconds / one)} ${unit}`;
}

/** How fresh a value is, and what is wrong with it, as a sentence. @param {Reading} kept @returns {string} */
export function words(kept) {
  const reading = now(kept);
  const checked = reading.checked_at ? `${span(age(reading))} ago` : "never";
  const last = reading.value == null ? "there is no value yet" : `this value was confirmed ${checked}`;
  const cause = CAUSES[reading.reason] ?? "The last refresh failed";
  if (reading.answer) return ANSWERS[reading.answer] ?? "This cannot be watched.";
  if (reading.verdict === "fresh") return `Fresh: checked ${checked}.`;
  if (reading.turned) return `Last checked ${checked}, and nothing newer has come since.`;
  if (reading.verdict === "stale") return `Last checked ${checked}, and due again.`;
  if (reading.verdict === "lagging") return `The source is late: checked ${checked}, but its own time is ${span(age(reading) + (Date.parse(reading.checked_at) - Date.parse(reading.source_at)) / 1000)} ago.`;
  if (reading.verdict === "unverifiable") return `Checked ${checked}; the source does not say how old it is.`;
  if (reading.verdict === "failing") return `${cause}; ${last}.`;
  return reading.checked_at ? `The source knows nothing of this (asked ${checked}).` : "Not fetched yet.";
}
