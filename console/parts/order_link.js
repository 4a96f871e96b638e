// The number of an order, which leads to its page.
import {html} from '../vendor/preact.js';
import {linkTo} from '../lib/route.js';

export const OrderLink = ({sale, number}) =>
  (sale && number ? html`<a href=${linkTo('sales', sale, 'order', number)}>${number}</a>` : number || '–');
