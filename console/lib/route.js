// Which view is shown: the part of the address behind '#', "#/sales/tea/letters".
import {signal} from './signal.js';

function plain(segment) {
  try {
    return decodeURIComponent(segment);
  } catch {  // typed by hand
    return segment;
  }
}

const segments = () => location.hash.replace(/^#\/?/, '').split('/').filter(Boolean).map(plain);

export const route = signal(segments());
addEventListener('hashchange', () => route.set(segments()));

/** linkTo('sales', 'tea') is "#/sales/tea". */
export const linkTo = (...path) => `#/${path.map(encodeURIComponent).join('/')}`;
