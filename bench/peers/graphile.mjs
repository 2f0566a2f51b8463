// graphile-worker, batched: jobs are fetched a thousand at a time and completed in batches; see graphile.py. Its event job:complete comes before a batch is
// sent, so done and the last finish are taken from the answers to its own DELETE.
import pg from "pg";
import { Logger, makeWorkerUtils, run, runMigrations } from "graphile-worker";
import { PAYLOAD, Stage, now, perform, sleep, timed } from "./stage.mjs";

const BULK = 5000;
const LOCAL_QUEUE = 1000;
const AT_ONCE = 100;
const logger = new Logger(() => (level, message) => level === "error" && process.stderr.write(message + "\n"));

function onCompleted(act) {
  const query = pg.Client.prototype.query;
  pg.Client.prototype.query = function (...args) {
    const answer = query.apply(this, args);
    if (/^delete from \S+_private_jobs/.test(args[0]?.text)) answer.then((result) => act(result.rowCount), () => {});
    return answer;
  };
}

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
    onCompleted((jobs) => {
      stage.last = now();
      stage.done += jobs;
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
