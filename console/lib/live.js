// The stream of snapshots, and all that may become of it. `live` tells every view how it stands.
import {ask, problemOf, Problem} from './api.js';
import {remember} from './history.js';
import {signal} from './signal.js';

/**
 * phase: 'starting'  nothing is known yet
 *        'login'     the service does not know who asks; of a login that has ended `problem` says why
 *        'live'      a snapshot came within the last seconds
 *        'lost'      there is no connection; `snapshot`, if any, is the last one
 *        'refused'   the service does not want this page: `problem` says why
 */
export const live = signal({phase: 'starting', session: null, snapshot: null, problem: null});

/** False: the key of this operator only reads, and no button is shown. */
export const mayAct = () => live.value.session?.may_act !== false;

export const announcement = signal('');

const patience = 6000;          // without a snapshot for so long the connection is lost
const hiddenFor = 30_000;       // a page that nobody sees asks for nothing
const delays = [1, 2, 4, 8, 10];  // seconds before the next attempt

let attempt = null;  // what ends the present one
let failures = 0;
let later = 0;

export async function connect() {
  disconnect();
  const mine = attempt = new AbortController();
  const began = performance.now();
  try {
    const session = await ask('GET', '/v1/operate/session');
    if (mine.signal.aborted) return;
    live.merge({session});
    await follow(mine);
    if (mine !== attempt) return;
    if (live.value.phase === 'live' && performance.now() - began > 1000) return connect();  // it may say why
    throw new Problem({title: 'The service has ended the connection'});
  } catch (problem) {
    if (mine === attempt) lose(problem);
  }
}

function disconnect() {
  clearTimeout(later);
  attempt?.abort();
  attempt = null;
}

function lose(problem) {
  disconnect();
  if (problem.status === 401) {
    const ended = live.value.session && new Problem({title: 'Your login has ended', detail: problem.detail});
    live.set({phase: 'login', session: null, snapshot: null, problem: ended});
    return;
  }
  if (problem.status === 403 || problem.status === 404) {
    live.merge({phase: 'refused', session: null, problem});  // it would say so again
    return;
  }
  if (live.value.phase === 'live') announcement.set('Connection lost');
  live.merge({phase: 'lost', problem});
  const seconds = delays[Math.min(failures++, delays.length - 1)];
  later = setTimeout(connect, seconds * (750 + 500 * Math.random()));  // not all pages at one instant
}

/** Reads the stream until it ends. */
async function follow(mine) {
  const impatient = () => mine.abort();
  let timer = setTimeout(impatient, patience);
  try {
    const response = await fetch('/v1/operate/events', {signal: mine.signal, cache: 'no-store'});
    if (!response.ok) throw await problemOf(response);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = '';;) {
      const {value, done} = await reader.read();
      if (done) return;
      const events = (rest + value).split('\n\n');
      rest = events.pop();
      for (const event of events) {
        if (!take(event)) continue;
        clearTimeout(timer);
        timer = setTimeout(impatient, patience);
      }
    }
  } finally {
    clearTimeout(timer);
  }
}

/** One event of the stream; false for a comment. */
function take(event) {
  const data = event.split('\n').filter(line => line.startsWith('data:')).map(line => line.slice(5));
  if (!data.length) return false;
  const snapshot = JSON.parse(data.join('\n'));
  failures = 0;
  remember(snapshot);
  const before = live.value.snapshot;
  recall(snapshot, before, snapshot.now);
  for (const sale of snapshot.sales) recall(sale, before?.sales.find(({name}) => name === sale.name), snapshot.now);
  tell(live.value, snapshot);
  live.merge({phase: 'live', snapshot, problem: null});
  return true;
}

const recalled = ['dead', 'messages', 'payments', 'refunds_failing', 'room', 'payments_of_no_sale'];

/** `of.last`, of a sale or a snapshot: what was said last of what needs people; where that is not of now, `of.last_at` says of when it is. */
function recall(of, before, now) {
  of.last = {};
  for (const name of recalled) {
    of.last[name] = of[name] ?? before?.last[name] ?? null;
    if (of.last[name] !== (of[name] ?? null)) of.last_at = before.last_at ?? before.at;
  }
  of.at = now;
}

/** What has changed so that an operator should hear of it. */
function tell({phase, snapshot: before}, snapshot) {
  const news = [];
  if (phase === 'lost') news.push('Connected again');
  const known = new Map(before?.sales.map(sale => [sale.name, sale]));
  for (const sale of snapshot.sales) {
    const old = known.get(sale.name);
    if (!old) continue;
    if (old.state !== sale.state) news.push(`Sale ${sale.name}: ${sale.state}`);
    if (sale.trouble && old.trouble !== sale.trouble) news.push(`Sale ${sale.name}: ${sale.trouble}`);
    if (old.dead !== null && sale.dead > old.dead) news.push(`Sale ${sale.name}: a new dead letter`);
  }
  if (news.length) announcement.set(news.slice(0, 5).join('. '));
}

let hidden = 0;
document.addEventListener('visibilitychange', () => {
  clearTimeout(hidden);
  if (document.hidden) hidden = setTimeout(disconnect, hiddenFor);
  else if (!attempt && live.value.phase !== 'login') connect();
});
addEventListener('online', () => live.value.phase === 'lost' && connect());

export async function logIn(key) {
  await ask('POST', '/console/login', {key});
  connect();  // it ends with the connection: nobody waits for it
}

export async function logOut() {
  await ask('POST', '/console/logout');
  disconnect();
  live.set({phase: 'login', session: null, snapshot: null, problem: null});
}
