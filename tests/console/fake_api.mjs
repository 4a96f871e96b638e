// The operators' API as it is agreed (docs/console.md), with states that a real service reaches seldom: a line that is
// cut, hundreds of sales, names full of markup. It serves the files of console/ under the same policy.
//   node tests/console/fake_api.mjs [PORT]      to look at it by hand; key: sk.ann.secret
import {createServer} from 'node:http';
import {readFile} from 'node:fs/promises';
import {fileURLToPath} from 'node:url';
import {extname, join, normalize} from 'node:path';

const root = fileURLToPath(new URL('../../console/', import.meta.url));
const media = {'.html': 'text/html; charset=utf-8', '.js': 'text/javascript; charset=utf-8', '.css': 'text/css; charset=utf-8', '.svg': 'image/svg+xml'};
export const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'";

/** A sale as a snapshot has it. */
export function sale(name, members = {}) {
  return {
    name, state: 'open', stock: 5000, sold: 1200, left: 3800, orders: 1200, waiting: 3, dead: 0,
    opens_at: null, closes_at: null, price: 500, currency: 'CNY', trouble: '', admitted_per_s: 12,
    answers: {admitted: 1200, repeated: 31, sold_out: 0, already_bought: 44},
    by_state: {awaiting: 210, paid: 940, cancelled: 20, expired: 24, refunding: 2, refunded: 4},
    due: {next: '2026-01-02T03:10:00.000Z', within_minute: 3},
    payments: {waiting: 1, asking: 0, flagged: 0}, refunds: 2, refunds_failing: 0,
    messages: {due: 4, dead: 0, failing: 0, failing_since: null, stopped: 0, stopped_since: null, last_failure: ''},
    worker: {inserted: 1197, repeated: 0, claimed: 0, dead: 0, recoveries: 0, failures: 0, last_failure: ''},
    workers: [{name: 'shop1:4711:1', pending: 2, idle_ms: 12}, {name: 'shop2:990:1', pending: 1, idle_ms: 830}],
    lag: {entries: 3, oldest_ms: 15}, room: null, buckets: null, in_transfer: 0,
    ...members,
  };
}

export const room = {state: 'open', rate: 50, inside: 200, inside_now: 12, waiting: 3400, in_per_s: 49, units_left: 900, paused: false, eta_s: 68};

/** Everything that there may be, at once. */
export const full = sale('tea', {
  dead: 2, payments: {waiting: 1, asking: 1, flagged: 1}, refunds_failing: 1, room: {...room}, in_transfer: 5,
  buckets: [0, 1, 2, 3].map(bucket => ({bucket, stock: 1250, sold: 300 + 40 * bucket, left: 950 - 40 * bucket})),
  answers: {admitted: 1200, repeated: 31, already_bought: 44, not_enough: 3, too_many_units: 1},
  messages: {due: 4, dead: 3, failing: 2, failing_since: '2026-01-02T02:00:00.000Z', stopped: 0, stopped_since: null, last_failure: 'http://shop.example answered 500'},
  closes_at: '2026-01-03T00:00:00.000Z',
});

const order = n => ({id: String(7_000_000_000_000_000 + n), number: `TEA2026010200${String(n).padStart(2, '0')}`, sale: 'tea', units: 1,
                     state: ['paid', 'awaiting', 'expired'][n % 3], buyer: `buyer-${n}`, issued_at: '2026-01-02T03:04:05.000Z'});

const tagOf = ({state, version}) => `"${state}-${version}"`;

const ofState = {dead: {state: 'dead', next_at: null}, done: {state: 'done', next_at: null}, stopped: {state: 'stopped', next_at: null},
                 due: {state: 'due', next_at: '2026-01-02T05:04:05.000Z'}};
const messages = state => [1, 2, 3].map(seq => ({id: `${order(1).id}:${seq}`, order: order(1).id, seq, type: 'order.paid', at: '2026-01-02T03:04:05.000Z',
                                                 attempts: 8, ...ofState[state],
                                                 note: `http://shop.example answered 500${state === 'stopped' ? '; its receiver wants no more: when it does, send it again, or all' : ''}`,
                                                 data: {order: order(1).number, amount: 500, currency: 'CNY'}}));
/** Those that fail are due, too; where their receiver has stopped them they are stopped. */
const rowState = (state, isStopped) => (['due', 'failing'].includes(state) ? isStopped ? 'stopped' : 'due' : state);
const refunds = [2, 3].map(seq => ({id: `${order(1).id}:${seq}`, key: `${order(1).id}.${seq}`, order: order(1).number, amount: 500 ** (seq - 1), currency: 'CNY',
                                    provider: 'acme', payment: 'evt_9', state: 'asked', failed: 3, since: '2026-01-02T03:04:05Z', next_at: '2026-01-02T05:04:05Z',
                                    note: 'http://bank.example answered 503: try later'}));

const moved = [{day: '2026-01-02', provider: 'acme', currency: 'CNY', payments: 940, paid: 470_000, refunds: 2, given_back: 1000, settled: 500, net: 469_000}];

/** A refusal, thrown by a handler below. */
const refusal = (status, title, detail = '', members = {}) => ({status, body: {type: 'urn:sluice:problem:x', title, status, ...(detail && {detail}), ...members}});
const changed = members => refusal(412, 'It has changed since it was looked at', '', members);

export class FakeApi {
  sales = [full, sale('coffee', {price: null, currency: null, by_state: null, due: null, payments: null, messages: null})];
  operator = null;      // who is logged in
  isOpen = false;
  isCut = false;        // the line: nothing is answered
  isFrozen = false;     // figures and time stand still
  setBack = 0;          // ms by which the clock was set back
  trouble = '';         // of the process
  salesInAll = null;    // where not all are shown
  beat = 1000;          // ms between snapshots
  delay = 0;            // ms between what a POST does and its answer
  pending = 0;          // POSTs that are not answered
  locks = [{name: 'stock:42', kind: 'mutex', holders: [{owner: 'shop1:4711:1', left_ms: 28_000}], waiting: 2},
           {name: 'report', kind: 'fair_mutex', holders: [], waiting: 0}];
  series = [{name: 'TEA', period: '20260102', last: 1200, left: 8799}];
  proxies = [{url: 'http://10.0.0.9:22222', reachable: true, why: '', pools: [{name: 'alpha', servers: [
    {name: 'a', address: '10.0.0.1:6379', weight: 1, alive: true, share: 0.52}, {name: 'b', address: '10.0.0.2:6379', weight: 1, alive: false, share: 0.48}]}]},
  {url: 'http://10.0.0.10:22222', reachable: false, why: 'connect: connection refused', pools: []}];
  journal = [{id: '0', at: '2026-01-02T03:04:05.000Z', operator: 'ann', action: 'console_refund', target: 'tea', detail: 'order=7000000000000001 units=1 reason=broken',
              outcome: 'failed: postgresql://localhost:5432/shop Cannot establish connection to the database. connection to server at "127.0.0.1" refused'}];
  strays = 0;           // payments of sales that nobody knows
  isMute = false;       // streams say nothing
  isHanging = false;    // the store: it says nothing of a sale, and does nothing
  letters = [{id: '1700-1', entry: '1700-0', reason: 'the database refuses it: CHECK constraint failed: units > 0', order: order(1), fields: {buyer: 'ann', request: 'r-1', units: '1'}},
             {id: '1700-2', entry: '1701-0', reason: 'the entry has no buyer', order: null, fields: {units: '1'}}];
  payments = [{provider: 'acme', event: 'evt_1', sale: 'tea', order: order(1).number, amount: 400, currency: 'CNY', state: 'flagged', note: 'it is of another amount', at: '2026-01-02T03:04:05.000Z'},
              {provider: 'acme', event: 'evt_3b52a5a4-7f2e-4bb6-9a7c-2f3b8c9d0e1f', sale: 'milk', order: 'MLK2026010200001', amount: 123_456_700, currency: 'CNY', state: 'waiting', note: '', at: '2026-01-02T03:04:05.000Z'},
              {provider: 'acme', event: 'evt_7f2e', sale: 'tea', order: order(3).number, amount: 999_900, currency: 'CNY', state: 'refunded',
               note: 'the order is paid already; refunding by ann: the buyer called twice and was told to wait', at: '2026-01-02T03:04:05.000Z'}];
  refunds = structuredClone(refunds);
  done = [];            // each POST that was not refused
  looks = 0;            // GETs of orders
  orders = new Map();   // what has become of order(n)
  mayAct = true;
  asked = [];           // each POST: {path, body}
  streams = new Set();

  async begin(port = 0) {
    this.server = createServer((request, response) => this.#answer(request, response).catch(error => {
      response.writeHead(500).end(String(error));
    }));
    await new Promise(resolve => this.server.listen(port, '127.0.0.1', resolve));
    this.timer = setInterval(() => this.#tick(), this.beat);
    this.origin = `http://127.0.0.1:${this.server.address().port}`;
    return this;
  }

  end() {
    clearInterval(this.timer);
    this.server.close();
    this.server.closeAllConnections();
  }

  /** Cuts the line, or mends it. */
  cut(isCut) {
    this.isCut = isCut;
    if (isCut) this.server.closeAllConnections();
  }

  /** As it is; of frozen figures, as it was so many seconds before. */
  snapshot(before = 0) {
    const now = this.isFrozen ? Date.UTC(2026, 0, 2, 3, 4, 5) - 1000 * before : Date.now() - this.setBack;
    return {now: new Date(now).toISOString(),
            process: {name: 'shop1:4711', uptime_s: 4321, trouble: this.trouble, connections: 212, requests_per_s: 84.5},
            payments_of_no_sale: this.isHanging ? null : this.strays, sales_in_all: this.salesInAll ?? this.sales.length, truncated: this.salesInAll !== null,
            sales: this.sales.map(each => (this.isHanging ? {...each, room: null, messages: null, payments: null, refunds_failing: null, state: 'unknown'} : before ? {...each, left: each.left + 12 * before, admitted_per_s: 12 + 6 * Math.sin(before / 4)} : each))};
  }

  tell(stream, before = 0) { stream.write(`event: state\ndata: ${JSON.stringify(this.snapshot(before))}\n\n`); }

  #tick() {
    for (const each of this.sales) {
      if (each.state !== 'open' || this.isFrozen) continue;
      const bought = Math.min(each.left, Math.round(each.admitted_per_s));
      each.sold += bought;
      each.left -= bought;
      each.orders += bought;
      each.admitted_per_s = each.left ? 12 + 6 * Math.sin(Date.now() / 4000) : 0;
      if (!each.left) each.state = 'sold out';
    }
    if (!this.isMute) for (const stream of this.streams) this.tell(stream);
  }

  /** Ends the login of whoever looks, as a service does whose keys have changed. */
  logOut() {
    this.operator = null;
    for (const stream of this.streams) stream.end();
  }

  async #answer(request, response) {
    if (this.isCut) return void request.socket.destroy();
    const {pathname: path, searchParams: query} = new URL(request.url, 'http://x');
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = chunks.length ? JSON.parse(Buffer.concat(chunks)) : null;
    if (request.method === 'GET' && !path.startsWith('/v1')) return this.#file(path, response);
    const {status, body: answer} = this.#call(request.method, path, query, body, request, response);
    if (status === 0) return;  // a stream
    if (request.method === 'POST' && this.delay) {
      ++this.pending;
      await new Promise(resolve => setTimeout(resolve, this.delay));
      --this.pending;
    }
    response.writeHead(status, {'Content-Type': status < 400 ? 'application/json' : 'application/problem+json', ...(answer?.version !== undefined && {ETag: tagOf(answer)})});
    response.end(answer === undefined ? '' : JSON.stringify(answer));
  }

  async #file(path, response) {
    const name = normalize(path.replace(/^\/console\/?/, '') || 'index.html');
    try {
      const bytes = await readFile(join(root, name));
      response.writeHead(200, {'Content-Type': media[extname(name)] ?? 'text/plain', 'Content-Security-Policy': policy}).end(bytes);
    } catch {
      response.writeHead(404).end();
    }
  }

  #call(method, path, query, body, request, response) {
    if (path === '/console/login') {
      if (body.key !== 'sk.ann.secret') return refusal(401, 'It is not known which of the shop\'s keys this is', 'no key of the file is this one');
      this.operator = 'ann';
      return {status: 204};
    }
    if (path === '/console/logout') {
      this.operator = null;
      return {status: 204};
    }
    if (!this.operator && !this.isOpen) return refusal(401, 'Log in');
    if (path === '/v1/operate/events') {
      response.writeHead(200, {'Content-Type': 'text/event-stream'});
      response.write(': here\n\n');
      this.streams.add(response);
      request.socket.on('close', () => this.streams.delete(response));
      for (let before = this.isFrozen ? 45 : 0; before >= 0; --before) this.tell(response, before);
      return {status: 0};
    }
    if (method === 'GET') return /\/orders\/[^/]+$/.test(path) ? this.#order(path) : {status: 200, body: this.#list(path, query)};
    const tag = request.headers['if-match'];
    this.asked.push({path, body, tag});
    const answer = this.isHanging
      ? refusal(503, 'Whether the request had an effect is unknown: repeat it with the same key', '', {type: 'urn:sluice:problem:effect-unknown'}) : this.#act(decodeURIComponent(path), body, tag);
    if (answer.status < 400) this.done.push(path);
    this.journal.unshift({id: String(this.journal.length + 1), at: new Date().toISOString(), operator: 'ann', action: path.split('/').at(-1),
                          target: decodeURIComponent(path.split('/')[4]), detail: body ? JSON.stringify(body) : '', outcome: answer.status < 400 ? 'done' : 'refused'});
    return answer;
  }

  #list(path, query) {
    const last = path.split('/').at(-1);
    const state = query.get('q');
    return {
      session: {operator: this.operator ?? 'local', open: this.isOpen, may_act: this.mayAct, version: '0.1.0', now: new Date().toISOString()},
      state: this.snapshot(),
      'dead-letters': {letters: this.letters, next: null},
      messages: {messages: messages(rowState(query.get('state'), this.sales[0]?.messages?.stopped > 0)), next: null},
      refunds: {refunds: this.refunds.filter(({state}) => (query.get('state') === 'done') === (state === 'done')), next: null},
      totals: {currency: 'CNY', days: [['2026-01-02', 'paid', 940], ['2026-01-02', 'expired', 1_234_567], ['2026-01-02', 'cancelled', 1_234_567], ['2026-01-02', 'awaiting', 210], ['2026-01-01', 'refunded', 4]].map(
        ([day, state, orders]) => ({day, state, orders, units: orders, amount: 500 * orders, returned: 2, returned_amount: 1000})), money: moved},
      money: {money: moved},
      payments: {payments: this.payments.filter(each => each.state === query.get('state') && (path.split('/').length === 4 || each.sale === 'tea')), next: null},
      orders: {orders: [1, 2, 3, 4, 5].map(n => this.its(query.get('after') ? n + 5 : n)).filter(each => !state || each.number === state || each.buyer === state)
        .filter(each => !query.get('state') || each.state === query.get('state')),
               next: query.get('after') || state ? null : '5'},
      locks: {locks: this.locks}, numbers: {series: this.series}, proxies: {proxies: this.proxies},
      journal: {entries: this.journal, next: null},
    }[last];
  }

  /** One order with all that there may be. */
  #order(path) {
    const [number] = path.split('/').slice(-1);
    const n = [1, 2, 3, 4, 5, 6, 7, 8].find(each => [order(each).number, order(each).id].includes(number));
    if (!n) return refusal(404, 'There is no such order');
    ++this.looks;
    return {status: 200, body: {...this.its(n), recorded: true, request: 'r-1', due: 0, refunds: this.refunds.map(({order: _, id: __, ...refund}) => refund),
      payments: this.payments.filter(each => each.sale === 'tea'), messages: messages('dead').slice(0, 2),
      history: [{at: '2026-01-02T03:05:05.000Z', event: 'order.paid', data: {state: 'paid', units: 2, amount: 1000, currency: 'CNY'}},
                {at: '2026-01-02T03:04:05.000Z', event: 'order.issued', data: {units: 2}}]}};
  }

  /** The order, with what has become of it. */
  its(n) { return {...order(n), version: 0, ...this.orders.get(n)}; }

  /** What another operator does to all that there is, while this one thinks. */
  interfere() {
    for (const n of [1, 2, 3, 4, 5]) this.orders.set(n, {state: 'paid', units: 3, returned: 1, version: 1});
    this.payments = this.payments.map(each => (each.state === 'refunded' ? each : {...each, state: 'refunding', failure: 'acme answered 500'}));
    this.refunds = this.refunds.map(each => ({...each, state: 'done'}));
  }

  #act(path, body, tag) {
    const [, , , kind, name, ...rest] = path.split('/');
    if (kind === 'payments') {
      const [event, way] = rest;
      if (body?.confirm !== name) return refusal(422, 'It was not confirmed', `type '${name}'`);
      const payment = this.payments.find(each => each.event === event);
      if (tag && tag !== `"${payment.state}"`) return changed({payment});
      Object.assign(payment, {state: way === 'refund' ? 'refunding' : 'settled', failure: ''});
      for (const each of this.sales) each.payments &&= {...each.payments, flagged: this.payments.filter(({state}) => state === 'flagged').length};
      return {status: 200, body: payment};
    }
    const own = this.sales.find(each => each.name === name);
    if (!own) return refusal(404, 'There is no such sale');
    const verb = rest.at(-1);
    if (['close', 'stock', 'settle', 'refund'].includes(verb) && body?.confirm !== name) return refusal(422, 'It was not confirmed', `type '${name}'`);
    if (kind === 'rooms' && verb === 'pause') own.room.paused = true;
    if (kind === 'rooms' && verb === 'resume') own.room.paused = false;
    if (kind === 'rooms' && verb === 'rate') own.room.rate = body.rate;
    if (kind === 'rooms' && verb === 'close') own.room.state = 'closed';
    if (kind === 'sales' && verb === 'close') own.state = 'closed';
    if (kind === 'sales' && verb === 'close' && this.trouble) return refusal(503, 'The database of the orders failed', 'close it again');
    if (verb === 'stock' && body.stock < own.sold) return refusal(409, 'More is sold than that', `${own.sold} are sold`);
    if (verb === 'stock') Object.assign(own, {stock: body.stock, left: body.stock - own.sold});
    if (verb === 'refund') {
      const n = [1, 2, 3, 4, 5].find(each => order(each).id === rest.at(-2));
      if (tag && tag !== tagOf(this.its(n))) return changed({order: this.its(n)});
      this.orders.set(n, {state: 'cancelled', returned: body.units ?? 0, version: this.its(n).version + 1});
      return {status: 200, body: {...this.its(n), taken_back: {units: body.units ?? 2, refund: 500}}};
    }
    const refund = kind === 'sales' && rest[0] === 'refunds' && this.refunds.find(({id}) => id === rest[1]);
    if (refund) {
      if (tag && tag !== `"${refund.state}"`) return changed({refund});
      if (verb === 'settle') refund.state = 'done';
      return {status: 204};
    }
    if (verb === 'revive' || verb === 'settle') {
      this.letters = this.letters.filter(letter => letter.id !== rest.at(-2));
      own.dead = this.letters.length;
    }
    if (verb === 'settle') return {status: 200, body: {order: null}};
    if (verb === 'audit') return {status: 200, body: {sound: true, findings: [], orders: own.orders, took_ms: 84}};
    if (verb === 'replay') return {status: 200, body: {replayed: 3}};
    return {status: 204};
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const api = await new FakeApi().begin(Number(process.argv[2] ?? 8090));
  console.log(`${api.origin}/console`);
}
