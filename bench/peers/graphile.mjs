// graphile-worker, batched: jobs are fetched a thousand at a time and completed in batches; see graphile.py. The last finish is its last job:complete event,
// which comes when the database has acknowledged it.
import { EventEmitter } from "node:events";
import { Logger, makeWorkerUtils, run, runMigrations } from "graphile-worker";
import { PAYLOAD, Stage, now, perform, sleep, timed } from "./stage.mjs";

const BULK = 5000;
const LOCAL_QUEUE = 1000;
const AT_ONCE = 100;
const logger = new Logger(() => (level, message) => level === "error" && process.stderr.write(message + "\n"));

async function withUtils(dsn, act) {
  const utils = await makeWorkerUtils({ connectionString: dsn, logger, maxPoolSize: 2 });
  try {
    return await act(utils);
  } finally {
    await utils.release();
  }
}

perform({
  async install(dsn) {
    await runMigrations({ connectionString: dsn, logger });
    return {};
  },

  fill: (dsn, { jobs }) =>
    withUtils(dsn, (utils) =>
      timed(jobs, async () => {
        for (let at = 0; at < jobs; at += BULK) {
          const specs = Array.from({ length: Math.min(BULK, jobs - at) }, () => ({ identifier: "noop", payload: PAYLOAD }));
          await utils.addJobs(specs);
        }
      }),
    ),

  one: (dsn, { jobs }) =>
    withUtils(dsn, (utils) =>
      timed(jobs, async () => {
        for (let n = 0; n < jobs; n++) await utils.addJob("noop", PAYLOAD);
      }),
    ),

  send: (dsn, { jobs, gap_seconds: [low, high] }) =>
    withUtils(dsn, async (utils) => {
      const sent = {};
      for (let n = 0; n < jobs; n++) {
        await sleep(1000 * (low + Math.random() * (high - low)));
        await utils.addJob("noop", { text: String(n) });
        sent[n] = now();
      }
      return { sent };
    }),

  async work(dsn, { sleep_ms: pause = 0, slots = AT_ONCE, note = false }) {
    const stage = new Stage();
    const events = new EventEmitter();
    events.on("job:complete", () => {
      stage.last = now();
      stage.done++;
    });
    const noop = async (payload) => {
      stage.handlerStarted();
      if (note) stage.starts[payload.text] = now();
      if (pause) await sleep(pause);
    };
    await stage.ready();
    const runner = await run({
      connectionString: dsn,
      logger,
      events,
      noHandleSignals: true,
      taskList: { noop },
      preset: {
        worker: {
          connectionString: dsn,
          concurrentJobs: slots,
          maxPoolSize: 10,
          localQueue: { size: LOCAL_QUEUE },
          completeJobBatchDelay: 0,
          failJobBatchDelay: 0,
        },
      },
    });
    await stage.untilStopped();
    await runner.stop();
    return stage.answer();
  },
});
