// ioredis through the proxy, or at an engine's port, in RESP2 and RESP3. The environment says where: PORT, ADMIN (its socket), CONFIG (its file).
const assert = require('node:assert/strict');
const { randomBytes } = require('node:crypto');
const Redis = require('ioredis').Redis;
const { around_restarts, check, is_proxy, run_checks, until } = require('./around.cjs');

const options = { port: Number(process.env.PORT), username: 'ann', password: 'sesame' };

for (const protocol of [2, 3]) {
  const client = (more = {}) => {
    const redis = new Redis({ ...options, protocol, ...more });
    redis.on('error', () => {}); // told by the call that fails
    return redis;
  };
  const with_client = (name, body) =>
    check(`RESP${protocol} ${name}`, async () => {
      const redis = client();
      await body(redis).finally(() => redis.disconnect());
    });

  with_client('login', async (redis) => {
    assert.equal(await redis.ping(), 'PONG');
    const wrong = client({ password: 'wrong', lazyConnect: true, retryStrategy: null, maxRetriesPerRequest: 0 });
    await assert.rejects(wrong.get('k'));
    wrong.disconnect();
    const reader = client({ username: 'eve', password: 'look' });
    assert.equal(await reader.get('none'), null);
    await assert.rejects(reader.set('none', 1), /NOPERM/);
    reader.disconnect();
  });

  with_client('database', async (redis) => {
    const other = client({ db: 4 });
    await Promise.all([other.set('where', 'four'), redis.set('where', 'none')]);
    assert.deepEqual([await other.get('where'), await redis.get('where')], ['four', 'none']);
    other.disconnect();
  });

  with_client('pipeline', async (redis) => {
    const pipeline = redis.pipeline();
    for (let i = 0; i < 500; ++i) pipeline.set(`p:${i}`, i);
    for (let i = 0; i < 500; ++i) pipeline.get(`p:${i}`);
    pipeline.lpush('p:0', 'x');
    const replies = await pipeline.exec();
    for (let i = 0; i < 500; ++i) assert.deepEqual(replies[500 + i], [null, `${i}`]);
    assert.match(replies[1000][0].message, /WRONGTYPE/);
    const values = await Promise.all(Array.from({ length: 300 }, (_, i) => redis.get(`p:${i}`)));
    assert.deepEqual(values, Array.from({ length: 300 }, (_, i) => `${i}`));
    assert.deepEqual(await redis.mget('p:0', 'p:1', 'p:2', 'none'), ['0', '1', '2', null]);
  });

  with_client('types', async (redis) => {
    await redis.hset('h', { a: 1, b: 2 });
    await redis.zadd('z', 1, 'one', 2.5, 'two');
    assert.deepEqual(await redis.hgetall('h'), { a: '1', b: '2' });
    assert.equal(Number(await redis.zscore('z', 'two')), 2.5);
  });

  with_client('transaction', async (redis) => {
    assert.deepEqual(await redis.multi().set('{t}a', 1).incr('{t}a').exec(), [[null, 'OK'], [null, 2]]);
    const other = client();
    await redis.watch('{t}a');
    await other.set('{t}a', 'other');
    assert.equal(await redis.multi().set('{t}a', 'lost').exec(), null);
    assert.equal(await redis.get('{t}a'), 'other');
    const spread = redis.multi();
    for (let i = 0; i < 20; ++i) spread.set(`${i * 7919} spread`, i);
    if (is_proxy) await assert.rejects(spread.exec(), /EXECABORT/);
    else assert.equal((await spread.exec()).length, 20);
    assert.equal(await redis.ping(), 'PONG');
    other.disconnect();
  });

  with_client('subscribe', async (redis) => {
    const listener = client();
    const seen = new Set();
    listener.on('message', (channel, text) => seen.add(`${channel} ${text}`));
    listener.on('pmessage', (pattern, channel, text) => seen.add(`${pattern} ${channel} ${text}`));
    await listener.subscribe('news');
    await listener.psubscribe('news.*');
    await until(async () => (await redis.publish('news', 'a')) > 0 && (await redis.publish('news.x', 'b')) > 0);
    await until(() => seen.size === 2);
    assert.deepEqual(seen, new Set(['news a', 'news.* news.x b']));
    await listener.unsubscribe('news');
    await listener.punsubscribe('news.*');
    assert.equal(await listener.ping(), 'PONG');
    listener.disconnect();
  });

  with_client('script', async (redis) => {
    redis.defineCommand('told', { numberOfKeys: 1, lua: `return {KEYS[1], ARGV[1], 'io${protocol} ${process.pid}'}` });
    for (const key of ['s1', 's2', 's3', 's4'])
      assert.equal((await redis.told(key, 'v'))[1], 'v');
    const replies = await redis.pipeline().told('s1', 'x').told('s2', 'y').exec();
    assert.deepEqual(replies.map(([, reply]) => reply[1]), ['x', 'y']);
    await assert.rejects(redis.evalsha('0'.repeat(40), 1, 's1'), /NOSCRIPT/);
    await assert.rejects(redis.eval("return redis.error_reply('on purpose')", 1, 's1'), /on purpose/);
  });

  with_client('scan', async (redis) => {
    const names = Array.from({ length: 300 }, (_, i) => `scan:${i}`);
    await redis.mset(...names.flatMap((name) => [name, 1]));
    const found = new Set();
    for await (const keys of redis.scanStream({ match: 'scan:*', count: 20 })) keys.forEach((one) => found.add(one));
    assert.deepEqual(found, new Set(names));
  });

  with_client('blocking', async (redis) => {
    const waiter = client();
    const popped = waiter.blpop('queue', 60);
    await redis.rpush('queue', 'job');
    assert.deepEqual(await popped, ['queue', 'job']);
    assert.equal(await waiter.blpop('empty', 0.01), null);
    waiter.disconnect();
  });

  with_client('big values and errors', async (redis) => {
    const value = randomBytes(5_000_000);
    await redis.set('big', value);
    assert.ok(value.equals(await redis.getBuffer('big')));
    await assert.rejects(redis.lpush('big', 'x'), /WRONGTYPE/);
    await assert.rejects(redis.call('NOSUCH', 'x'), /unknown command/i);
    assert.equal(await redis.strlen('big'), value.length);
  });
}

if (is_proxy) check('reload and upgrade', () =>
  around_restarts(async (restart) => {
    const pool = [2, 3, 3].map((protocol) => new Redis({ ...options, protocol }));
    for (const redis of pool) redis.on('error', () => {});
    await Promise.all(pool.map((redis, i) => redis.set(`stays:${i}`, i)));
    for (const command of ['RELOAD', 'UPGRADE']) {
      await restart(command);
      assert.deepEqual(await Promise.all(pool.map((redis, i) => redis.get(`stays:${i}`))), ['0', '1', '2']);
    }
    for (const redis of pool) redis.disconnect();
  }));

run_checks();
