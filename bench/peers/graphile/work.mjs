// Chains or fan-outs of jobs on graphile-worker: work.mjs chain|fan_out CONCURRENCY SECONDS DATABASE_URL
//
// It has jobs and no workflows: a chain is a job that adds the next, a fan-out is a hundred jobs
// that are counted here. What it keeps is less than a workflow engine does; that makes it the floor.
import pg from "pg";
import { Logger, makeWorkerUtils, run } from "graphile-worker";

const LENGTH = 100;
const [shape, concurrencyText, secondsText, url] = process.argv.slice(2);
const concurrency = Number(concurrencyText);
const silent = new Logger(() => () => {});
const pool = new pg.Pool({ connectionString: url, max: 20 });
const lost = (error) => {
  process.stderr.write(`a connection failed: ${error.message}\n`);
  process.exit(1);
};
pool.on("error", lost);
pool.on("connect", (client) => client.on("error", lost));
let isOpen = false;
let steps = 0;
let number = 0;
const last = new Map();
const gaps = [];
const missing = new Map();

function counted(execution) {
  const now = process.hrtime.bigint();
  const before = last.get(execution);
  last.set(execution, now);
  if (!isOpen) return;
  steps += 1;
  if (before !== undefined) gaps.push(Number(now - before) / 1000);
}

const utils = await makeWorkerUtils({ pgPool: pool, logger: silent });
await utils.migrate();

async function start() {
  number += 1;
  if (shape === "chain") {
    await utils.addJob("link", { execution: number, left: LENGTH });
    return;
  }
  missing.set(number, LENGTH);
  const execution = number;
  await utils.addJobs(Array.from({ length: LENGTH }, () => ({ identifier: "item", payload: { execution } })));
}

const tasks = {
  async link({ execution, left }, helpers) {
    counted(execution);
    if (left > 1) await helpers.addJob("link", { execution, left: left - 1 });
    else await start();
  },
  async item({ execution }) {
    counted(execution);
    missing.set(execution, missing.get(execution) - 1);
    if (missing.get(execution) === 0) await start();
  },
};

await run({
  pgPool: pool,
  logger: silent,
  concurrency: shape === "chain" ? concurrency : 64,
  pollInterval: 1000,
  // What its documentation names for throughput: jobs fetched and ended in batches.
  preset: { worker: { localQueue: { size: 200 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 } },
  taskList: tasks,
});
for (let lane = 0; lane < concurrency; lane += 1) await start();
await new Promise((resolve) => setTimeout(resolve, 2000));
process.stdout.write("begin\n");
const began = process.hrtime.bigint();
isOpen = true;
await new Promise((resolve) => setTimeout(resolve, Number(secondsText) * 1000));
isOpen = false;
const seconds = Number(process.hrtime.bigint() - began) / 1e9;
gaps.sort((one, other) => one - other);
const at = (share) => Math.round(gaps[Math.min(gaps.length - 1, Math.floor(gaps.length * share))] ?? 0);
const line = { steps, seconds, p50_us: at(0.5), p99_us: at(0.99), p999_us: at(0.999) };
process.stdout.write(`${JSON.stringify(line)}\n`, () => process.exit(0));
