// pg-boss at its best settings, see pgboss.py. Its handler gets a batch; all of it runs at once. The last finish is the last completed_on.
import { PgBoss } from "pg-boss";
import pg from "pg";
import { PAYLOAD, Stage, now, perform, sleep, timed } from "./stage.mjs";

const BULK = 5000;
const BATCH = 1000;
const WORKERS = 2;

async function withBoss(dsn, act) {
  const boss = new PgBoss({ connectionString: dsn, supervise: false, schedule: false, useListenNotify: true });
  boss.on("error", (error) => process.stderr.write(String(error) + "\n"));
  await boss.start();
  try {
    return await act(boss);
  } finally {
    await boss.stop({ graceful: true, timeout: 5000 });
  }
}

async function lastCompleted(dsn) {
  const client = new pg.Client({ connectionString: dsn });
  await client.connect();
  const { rows } = await client.query(
    "SELECT extract(epoch FROM max(completed_on))::float8 AS at FROM pgboss.job WHERE state = 'completed'",
  );
  await client.end();
  return rows[0].at;
}

perform({
  // NOTIFY only where it helps, in the latency of an idle worker: elsewhere it would only make every insert dearer.
  install: (dsn, { note = false }) =>
    withBoss(dsn, async (boss) => {
      await boss.createQueue("noop", { notify: note });
      return {};
    }),

  fill: (dsn, { jobs }) =>
    withBoss(dsn, (boss) =>
      timed(jobs, async () => {
        for (let at = 0; at < jobs; at += BULK) {
          await boss.insert("noop", Array.from({ length: Math.min(BULK, jobs - at) }, () => ({ data: PAYLOAD })));
        }
      }),
    ),

  one: (dsn, { jobs }) =>
    withBoss(dsn, (boss) =>
      timed(jobs, async () => {
        for (let n = 0; n < jobs; n++) await boss.send("noop", PAYLOAD);
      }),
    ),

  send: (dsn, { jobs, gap_seconds: [low, high] }) =>
    withBoss(dsn, async (boss) => {
      const sent = {};
      for (let n = 0; n < jobs; n++) {
        await sleep(1000 * (low + Math.random() * (high - low)));
        await boss.send("noop", { text: String(n) });
        sent[n] = now();
      }
      return { sent };
    }),

  async work(dsn, { sleep_ms: pause = 0, slots = null, note = false }) {
    const stage = new Stage();
    const last = await withBoss(dsn, async (boss) => {
      await stage.ready();
      const options = {
        batchSize: slots ? slots / WORKERS : BATCH,
        localConcurrency: WORKERS,
        pollingIntervalSeconds: 0.5,
        burstWhenBatchFull: true,
      };
      await boss.work("noop", options, async (jobs) => {
        stage.handlerStarted();
        if (note) for (const job of jobs) stage.starts[job.data.text] = now();
        if (pause) await Promise.all(jobs.map(() => sleep(pause)));
        stage.done += jobs.length;
      });
      await stage.untilStopped();
    });
    stage.last = await lastCompleted(dsn);
    return stage.answer();
  },
});
