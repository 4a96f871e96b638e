// The console. Each view is a module of views/; this one chooses which is shown.
import {html, render} from './vendor/preact.js';
import {connect, live} from './lib/live.js';
import {linkTo, route} from './lib/route.js';
import {useSignal} from './lib/signal.js';
import {Frame, Title} from './parts/frame.js';
import {Empty, Refusal} from './parts/notice.js';
import {Login} from './views/login.js';
import {Order} from './views/order.js';
import {Overview} from './views/overview.js';
import {AllPayments, Payments} from './views/payments.js';
import {Letters, Messages, Orders, Refunds, Totals} from './views/records.js';
import {Sale, SaleFrame} from './views/sale.js';
import {Journal, Locks, Numbers, Proxies} from './views/store.js';

const views = {payments: AllPayments, locks: Locks, numbers: Numbers, proxies: Proxies, journal: Journal};
const ofSale = {'': Sale, orders: Orders, order: Order, letters: Letters, messages: Messages, payments: Payments, refunds: Refunds, totals: Totals};

function View({path: [room = 'sales', name, part = '', ...rest], snapshot}) {
  const is_known = room === 'sales' ? Object.hasOwn(ofSale, part) && rest.length === Number(part === 'order')
                                    : Object.hasOwn(views, room) && !name;
  if (!is_known) return html`<${Nothing} what="There is no such page" />`;
  if (room !== 'sales') return html`<${views[room]} />`;
  if (!snapshot) return html`<${Opening} />`;
  if (name === undefined) return html`<${Overview} snapshot=${snapshot} />`;
  const sale = snapshot.sales.find(each => each.name === name);
  if (!sale) return html`<${Nothing} what=${snapshot.truncated ? `“${name}” is not among the sales that are shown` : `There is no sale “${name}”`} />`;
  return html`<${SaleFrame} sale=${sale} part=${part} key=${name}><${ofSale[part]} sale=${sale} rest=${rest} process=${snapshot.process} /><//>`;
}

const Opening = () => html`<${Title} document="Console">One moment<//><p class="quiet">The first figures are on their way.</p>`;

const Nothing = ({what}) => html`
  <${Title} document="Nothing here">${what}<//>
  <${Empty} title="The address may be old, or mistyped."><a href=${linkTo()}>All sales</a><//>`;

const Refused = ({problem}) => html`<${Title} document="Not allowed">Not from here<//><${Refusal} problem=${problem} again=${connect} />`;

function App() {
  const state = useSignal(live);
  const path = useSignal(route);
  const here = path[0] ?? 'sales';
  return html`
    <${Frame} here=${here} state=${state}>
      ${state.phase === 'login' ? html`<${Login} />`
        : state.session ? html`<${View} path=${path} snapshot=${state.snapshot} />`
        : state.phase === 'refused' ? html`<${Refused} problem=${state.problem} />`
        : state.phase === 'lost' ? html`<${Nothing} what="Not connected" />` : html`<${Opening} />`}
    <//>`;
}

const place = document.getElementById('app');
place.replaceChildren();
render(html`<${App} />`, place);
connect();
