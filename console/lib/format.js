// Numbers and times as people read them.

const whole = new Intl.NumberFormat('en', {maximumFractionDigits: 0});
const tenths = new Intl.NumberFormat('en', {minimumFractionDigits: 1, maximumFractionDigits: 1});

/** A figure that is not known is none. */
const known = show => n => ((n ?? null) === null ? '–' : show(n));

export const count = known(n => whole.format(n));
export const rate = known(n => (n >= 1000 ? whole : tenths).format(n));
export const share = known(n => `${(100 * n).toFixed(1)} %`);

export const percent = (part, all) => (all > 0 ? `${Math.round((100 * part) / all)} %` : '0 %');

export const some = (n, noun, plural = `${noun}s`) => `${count(n)} ${n === 1 ? noun : plural}`;

/** An amount in the smallest unit of its currency, as an API has it. */
export function money(amount, currency) {
  try {
    const format = new Intl.NumberFormat('en', {style: 'currency', currency});
    return format.format(amount / 10 ** format.resolvedOptions().maximumFractionDigits);
  } catch {  // a currency that the browser does not know
    return `${count(amount)} ${currency ?? ''}`.trim();
  }
}

/** 12 ms, 3.4 s, 2 min 5 s, 3 h 20 min, 4 d 2 h. */
export const duration = known(ms => {
  if (ms < 1000) return `${whole.format(ms)} ms`;
  if (ms < 10_000) return `${tenths.format(ms / 1000)} s`;
  const parts = [['d', 86_400], ['h', 3600], ['min', 60], ['s', 1]];
  let seconds = Math.round(ms / 1000);
  const at = parts.findIndex(([, size]) => seconds >= size);
  return parts.slice(at, at + 2).map(([name, size]) => {
    const n = Math.floor(seconds / size);
    seconds -= n * size;
    return n ? `${n} ${name}` : '';
  }).filter(Boolean).join(' ');
});

const free = [['paid', 'awaiting', 'awaiting'], ['cancelled', 'cancelled', 'cancelled']];
const priced = ['awaiting', 'paid', 'cancelled', 'expired', 'refunding', 'refunded'].map(name => [name, name, name]);

/** How many orders are in each state, as bars take it. Where there is no price, nobody awaits a payment. */
export const partsOf = ({by_state, price}) => (price ? priced : free)
  .map(([name, label, state]) => ({name, label, n: by_state[state] ?? 0}));

const two = n => String(n).padStart(2, '0');

export function clock(time) {
  const date = new Date(time);
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

/** The hour, and the day where it is not today. */
export function moment(time) {
  if (!time) return '–';
  const date = new Date(time);
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return date.toDateString() === new Date().toDateString() ? clock(date) : `${day} ${clock(date)}`;
}

export const words = name => String(name ?? '').replaceAll('_', ' ');
