// node-redis through the proxy, or at an engine's port, in RESP2 and RESP3. The environment says where: PORT, ADMIN (its socket), CONFIG (its file).
const assert = require('node:assert/strict');
const { randomBytes } = require('node:crypto');
const { createClient, defineScript, RESP_TYPES } = require('redis');
const { around_restarts, check, is_proxy, run_checks, until } = require('./around.cjs');

const connected = async (more = {}) => {
  const redis = createClient({
    username: 'ann',
    password: 'sesame',
    socket: { host: '127.0.0.1', port: Number(process.env.PORT) },
    ...more,
  });
  redis.on('error', () => {}); // told by the call that fails
  return redis.connect();
};

for (const RESP of [2, 3]) {
  const client = (more = {}) => connected({ RESP, ...more });
  const key = (name) => `node${RESP}:${name}`;
  const with_client = (name, body) =>
    check(`RESP${RESP} ${name}`, async () => {
      const redis = await client();
      await body(redis).finally(() => redis.destroy());
    });

  with_client('login', async (redis) => {
    assert.equal(await redis.ping(), 'PONG');
    const once = { host: '127.0.0.1', port: Number(process.env.PORT), reconnectStrategy: false };
    await assert.rejects(client({ password: 'wrong', socket: once }), /WRONGPASS/);
    const reader = await client({ username: 'eve', password: 'look' });
    assert.equal(await reader.get(key('none')), null);
    await assert.rejects(reader.set(key('none'), '1'), /NOPERM/);
    reader.destroy();
  });

  with_client('database and name', async (redis) => {
    const other = await client({ database: 5, name: 'named' });
    await Promise.all([other.set(key('where'), 'five'), redis.set(key('where'), 'none')]);
    assert.deepEqual([await other.get(key('where')), await redis.get(key('where'))], ['five', 'none']);
    assert.equal(await other.clientGetName(), 'named');
    other.destroy();
  });

  with_client('pipeline', async (redis) => {
    const numbers = Array.from({ length: 500 }, (_, i) => i);
    await Promise.all(numbers.map((i) => redis.set(key(i), `${i}`)));
    assert.deepEqual(await Promise.all(numbers.map((i) => redis.get(key(i)))), numbers.map(String));
    assert.deepEqual(await redis.mGet([key(0), key(1), key(2), key('none')]), ['0', '1', '2', null]);
  });

  with_client('types', async (redis) => {
    await redis.hSet(key('h'), { a: '1', b: '2' });
    await redis.zAdd(key('z'), [{ score: 2.5, value: 'two' }, { score: 1, value: 'one' }]);
    assert.deepEqual({ ...(await redis.hGetAll(key('h'))) }, { a: '1', b: '2' });
    assert.deepEqual(await redis.zRangeWithScores(key('z'), 0, -1), [{ value: 'one', score: 1 }, { value: 'two', score: 2.5 }]);
  });

  with_client('transaction', async (redis) => {
    const at = key('{t}a');
    assert.deepEqual(await redis.multi().set(at, '1').incr(at).exec(), ['OK', 2]);
    const other = await client();
    await redis.watch(at);
    await other.set(at, 'other');
    await assert.rejects(redis.multi().set(at, 'lost').exec(), /watched/);
    assert.equal(await redis.get(at), 'other');
    const spread = redis.multi();
    for (let i = 0; i < 20; ++i) spread.set(key(`${i * 7919} spread`), 'x');
    if (is_proxy) await assert.rejects(spread.exec(), /CROSSSLOT/);
    else assert.equal((await spread.exec()).length, 20);
    assert.equal(await redis.ping(), 'PONG');
    other.destroy();
  });

  with_client('subscribe', async (redis) => {
    const listener = await client();
    const seen = new Set();
    await listener.subscribe(key('news'), (text, channel) => seen.add(`${channel} ${text}`));
    await listener.pSubscribe(key('news.*'), (text, channel) => seen.add(`${channel} ${text}`));
    await until(async () => (await redis.publish(key('news'), 'a')) > 0 && (await redis.publish(key('news.x'), 'b')) > 0);
    await until(() => seen.size === 2);
    assert.deepEqual([...seen].sort(), [`${key('news')} a`, `${key('news.x')} b`]);
    await listener.unsubscribe();
    await listener.pUnsubscribe();
    assert.equal(String(await listener.ping()), 'PONG');
    listener.destroy();
  });

  with_client('script', async () => {
    const told = defineScript({
      SCRIPT: `return {KEYS[1], ARGV[1], 'node${RESP} ${process.pid}'}`,
      NUMBER_OF_KEYS: 1,
      parseCommand: (parser, name, value) => { parser.pushKey(name); parser.push(value); },
      transformReply: (reply) => reply[1],
    });
    const redis = await client({ scripts: { told } });
    for (const name of ['s1', 's2', 's3', 's4']) assert.equal(await redis.told(key(name), 'v'), 'v');
    await assert.rejects(redis.evalSha('0'.repeat(40), { keys: [key('s1')] }), /NOSCRIPT/);
    await assert.rejects(redis.eval("return redis.error_reply('on purpose')", { keys: [key('s1')] }), /on purpose/);
    redis.destroy();
  });

  with_client('scan', async (redis) => {
    const names = Array.from({ length: 300 }, (_, i) => key(`scan:${i}`));
    await redis.mSet(names.flatMap((name) => [name, '1']));
    const found = new Set();
    for await (const keys of redis.scanIterator({ MATCH: key('scan:*'), COUNT: 20 })) keys.forEach((one) => found.add(one));
    assert.deepEqual(found, new Set(names));
  });

  with_client('blocking', async (redis) => {
    const waiter = await client();
    const popped = waiter.blPop(key('queue'), 60);
    await redis.rPush(key('queue'), 'job');
    assert.deepEqual({ ...(await popped) }, { key: key('queue'), element: 'job' });
    assert.equal(await waiter.blPop(key('empty'), 0.01), null);
    waiter.destroy();
  });

  with_client('big values and errors', async (redis) => {
    const value = randomBytes(5_000_000);
    await redis.set(key('big'), value);
    const whole = await redis.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer }).get(key('big'));
    assert.ok(value.equals(whole));
    await assert.rejects(redis.lPush(key('big'), 'x'), /WRONGTYPE/);
    await assert.rejects(redis.sendCommand(['NOSUCH', 'x']), /unknown command/i);
    assert.equal(await redis.strLen(key('big')), value.length);
  });
}

if (is_proxy) check('reload and upgrade', () =>
  around_restarts(async (restart) => {
    const pool = await Promise.all([2, 3, 3].map((RESP) => connected({ RESP })));
    await Promise.all(pool.map((redis, i) => redis.set(`stays:${i}`, `${i}`)));
    for (const command of ['RELOAD', 'UPGRADE']) {
      await restart(command);
      assert.deepEqual(await Promise.all(pool.map((redis, i) => redis.get(`stays:${i}`))), ['0', '1', '2']);
    }
    for (const redis of pool) redis.destroy();
  }));

run_checks();
