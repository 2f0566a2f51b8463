// The same conversation as bench/stage.py: ready, go, done n …, stop, answer.
import { createInterface } from "node:readline";

export const PAYLOAD = { text: "x".repeat(86) };
const POLL_MS = 20;

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const say = (message) => process.stdout.write(JSON.stringify(message) + "\n");

export const now = () => (performance.timeOrigin + performance.now()) / 1000;
export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export class Stage {
  first = null;
  last = null;
  done = 0;
  starts = {};

  handlerStarted() {
    this.first ??= now();
  }

  async ready() {
    say({ ready: true });
    await lines.next();
  }

  async untilStopped() {
    let told = 0;
    const timer = setInterval(() => {
      if (this.done !== told) say({ done: (told = this.done) });
    }, POLL_MS);
    await lines.next();
    clearInterval(timer);
  }

  answer() {
    return { first: this.first, last: this.last, done: this.done, starts: this.starts };
  }
}

export async function timed(jobs, act) {
  const started = performance.now();
  await act();
  return { jobs_per_second: jobs / ((performance.now() - started) / 1000) };
}

export async function perform(verbs) {
  const [verb, options] = process.argv.slice(2);
  const answer = await verbs[verb](process.env.BENCH_DSN, JSON.parse(options));
  process.stdout.write(JSON.stringify({ answer }) + "\n", () => process.exit(0));
}
