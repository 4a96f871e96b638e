// BullMQ, whose queues are scripts, streams and blocked clients, at an engine's port. The environment says where: PORT.
const assert = require('node:assert/strict');
const { FlowProducer, Queue, QueueEvents, Worker } = require('bullmq');
const { check, run_checks, until } = require('./around.cjs');

const connection = { port: Number(process.env.PORT), username: 'ann', password: 'sesame', maxRetriesPerRequest: null };

check('jobs are done once, in order, and again after a failure', async () => {
  const queue = new Queue('jobs', { connection });
  const events = new QueueEvents('jobs', { connection });
  await events.waitUntilReady();
  const done = [];
  let failures = 0;
  const worker = new Worker('jobs', async (job) => {
    if (job.name === 'fails' && ++failures < 3) throw new Error('on purpose');
    done.push(job.data.n);
    return job.data.n * 2;
  }, { connection, concurrency: 1 });
  worker.on('error', () => {});
  const jobs = await queue.addBulk(Array.from({ length: 100 }, (_, n) => ({ name: 'job', data: { n } })));
  assert.equal(await jobs[99].waitUntilFinished(events, 30_000), 198);
  assert.deepEqual(done, Array.from({ length: 100 }, (_, n) => n));
  const failing = await queue.add('fails', { n: 100 }, { attempts: 3, backoff: { type: 'fixed', delay: 20 } });
  assert.equal(await failing.waitUntilFinished(events, 30_000), 200);
  assert.equal(failures, 3);
  const late = await queue.add('late', { n: 101 }, { delay: 100, priority: 5 });
  assert.equal(await late.waitUntilFinished(events, 30_000), 202);
  await until(async () => (await queue.getJobCounts('completed')).completed === 102);
  await Promise.all([worker.close(), events.close()]);
  await queue.obliterate({ force: true });
  assert.equal((await queue.getJobCounts('completed')).completed, 0);
  await queue.close();
});

check('a parent waits for its children', async () => {
  const seen = [];
  const workers = ['parents', 'children'].map((name) => new Worker(name, async (job) => seen.push(job.name), { connection }));
  const flow = new FlowProducer({ connection });
  await flow.add({ name: 'parent', queueName: 'parents', children: ['a', 'b', 'c'].map((name) => ({ name, queueName: 'children' })) });
  await until(() => seen.length === 4);
  assert.equal(seen[3], 'parent');
  await Promise.all([...workers.map((worker) => worker.close()), flow.close()]);
});

check('of many workers each job has one', async () => {
  const queue = new Queue('many', { connection });
  const times = new Map();
  const workers = Array.from({ length: 5 }, () =>
    new Worker('many', async (job) => times.set(job.id, (times.get(job.id) ?? 0) + 1), { connection, concurrency: 3 }));
  await queue.addBulk(Array.from({ length: 200 }, (_, n) => ({ name: 'job', data: { n } })));
  await until(async () => (await queue.getJobCounts('completed')).completed === 200);
  assert.equal(times.size, 200);
  assert.ok([...times.values()].every((count) => count === 1));
  await Promise.all(workers.map((worker) => worker.close()));
  await queue.close();
});

run_checks();
