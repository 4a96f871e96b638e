// Takes the pictures of docs/console.md: a real service, and a crowd that queues, buys, pays and cancels for a while.
//   node tests/console/pictures_for_docs.mjs [SECONDS]
import {spawnSync} from 'node:child_process';
import {createHmac, randomBytes} from 'node:crypto';
import {writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {fileURLToPath} from 'node:url';
import {launch, openPage, shows, visit} from './browser.mjs';
import {Service} from './service.mjs';

const seconds = Number(process.argv[2] ?? 150);
const docs = fileURLToPath(new URL('../../docs/', import.meta.url));
const pause = ms => new Promise(resolve => setTimeout(resolve, ms));

const secret = randomBytes(32);
const secretFile = join(tmpdir(), `sluice-whsec-${process.pid}`);
writeFileSync(secretFile, `whsec_${secret.toString('base64')}\n`, {mode: 0o600});

const tomorrow = new Date(Date.now() + 86_400_000).toISOString().replace(/\.\d+/, '');
const service = await Service.begin([
  {name: 'tea', stock: 6000, type: 'TEA', price: 14900, currency: 'CNY', 'pay-within': '40s', grace: '2s'},
  {name: 'porcelain-cups', stock: 1200, type: 'CUP', limit: 3},
  {name: 'spring-sampler', stock: 240, type: 'SPR', price: 3900, currency: 'EUR', 'pay-within': '15m', grace: '2m'},
  {name: 'autumn-harvest', stock: 3000, type: 'AUT', price: 9900, currency: 'CNY', opens: tomorrow},
  {name: 'matcha-whisks', stock: 400, type: 'WSK', limit: 2},
  {name: 'winter-stock', stock: 500, type: 'WIN'},
], ['--room', 'tea=25/250', '--payments', `acme=${secretFile}`]);

let serial = 0;
let wasShort = false;
async function pay({number, due}, amount = due) {
  const id = `evt_${++serial}`;
  const at = Math.floor(Date.now() / 1000);
  const body = JSON.stringify({id, type: 'payment.succeeded', sale: 'tea', order: number, amount, currency: 'CNY'});
  const signature = createHmac('sha256', secret).update(`${id}.${at}.${body}`).digest('base64');
  const {status} = await fetch(`${service.origin}/v1/payments/acme`, {method: 'POST', body,
    headers: {'Content-Type': 'application/json', 'webhook-id': id, 'webhook-timestamp': String(at), 'webhook-signature': `v1,${signature}`}});
  if (status >= 300) console.error(`a payment was answered by ${status}`);
}

/** One buyer: waits for his turn, buys, and mostly pays. */
async function visitTea(name) {
  const own = {'Sluice-Buyer': name};
  const queue = `${service.origin}/v1/sales/tea/queue`;
  let place = await (await fetch(queue, {method: 'POST', headers: own})).json();
  const ticket = {...own, 'Sluice-Ticket': place.ticket};
  while (place.state === 'waiting' || place.state === 'enrolled') {
    await pause(place.poll_after_ms);
    place = await (await fetch(queue, {headers: ticket})).json();
  }
  if (place.state !== 'inside') return;
  await pause(300 + 1500 * Math.random());
  const bought = await service.buy('tea', name, 1 + (serial % 2), {'Sluice-Ticket': ticket['Sluice-Ticket']});
  if (bought.status !== 201) return;
  const order = await bought.json();
  const luck = Math.random();
  await pause(1000 + 9000 * Math.random());
  if (luck < 0.82) await pay({number: order.number, due: 14900 * order.units});
  else if (luck < 0.87) await fetch(`${service.origin}/v1/sales/tea/orders/${order.id}/cancel`, {method: 'POST', headers: own});
  if (luck < 0.1) await service.buy('tea', name, order.units);  // pressed again
  if (serial > 300 && !wasShort) {
    wasShort = true;
    await pay({number: order.number, due: 100});  // too little: somebody has to look at it
  }
}

let isOver = false;
const quietly = work => work.catch(error => isOver || console.error(error.message));
let visitors = 0;
const crowd = setInterval(() => {
  const wave = 3.4 + 2 * Math.sin(Date.now() / 9000);  // each tenth of a second
  for (let i = 0; i < wave - 1; ++i) quietly(visitTea(`visitor-${++visitors}`));
  if (Math.random() < 0.5) quietly(service.buy('porcelain-cups', `guest-${++visitors}`));
  if (Math.random() < 0.1) quietly(service.buy('matcha-whisks', `guest-${++visitors}`));
  quietly(service.buy('spring-sampler', `friend-${++visitors}`));
}, 100);

const browser = await launch();
const page = await openPage(browser, {width: 1200, height: 640});
await page.goto(`${service.origin}/console`);
await page.type('input[type=password]', service.key);
await page.keyboard.press('Enter');
await shows(page, 'left of 6,000');
await fetch(`${service.origin}/v1/operate/sales/winter-stock/close`, {method: 'POST', body: '{"confirm":"winter-stock"}',
  headers: {'Content-Type': 'application/json', Authorization: `Bearer ${service.key}`}});
await visit(page, '#/sales/tea', 'tea');
await pause(seconds * 1000);
await page.evaluate(() => scrollTo(0, 0));
await page.screenshot({path: `${docs}console_sale.png`, fullPage: true});
await visit(page, '#/', 'Sales');
await pause(1200);
await page.screenshot({path: `${docs}console_overview.png`, fullPage: true});
isOver = true;
clearInterval(crowd);
spawnSync('pngquant', ['--force', '--ext', '.png', '--speed', '1', `${docs}console_sale.png`, `${docs}console_overview.png`]);  // where it is installed
await browser.close();
await service.end();
process.exit(0);
