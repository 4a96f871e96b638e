// Which view is shown: the part of the address behind '#', "#/sales/tea/payments?state=waiting".
import {signal, useSignal} from './signal.js';

function plain(segment) {
  try {
    return decodeURIComponent(segment);
  } catch {  // typed by hand
    return segment;
  }
}

const parts = () => location.hash.replace(/^#\/?/, '').split('?');
const segments = () => parts()[0].split('/').filter(Boolean).map(plain);

export const route = signal(segments());
const query = signal(parts()[1]);
addEventListener('hashchange', () => {
  route.set(segments());
  query.set(parts()[1]);
});

/** linkTo('sales', 'tea') is "#/sales/tea". */
export const linkTo = (...path) => `#/${path.map(encodeURIComponent).join('/')}`;

/** A word of the address, and what sets it: a reload and Back keep what a list is narrowed to. */
export function useWord(name, usual = '') {
  const words = new URLSearchParams(useSignal(query));
  const set = value => {
    if (value === usual) words.delete(name);
    else words.set(name, value);
    location.hash = `#/${[parts()[0], String(words)].filter(Boolean).join('?')}`;
  };
  return [words.get(name) ?? usual, set];
}
