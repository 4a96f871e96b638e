// The console in a browser. One browser serves all cases; each has a page and a service of its own.
//   node tests/console/console_test.mjs [--test-name-pattern=V50]
import assert from 'node:assert/strict';
import {after, before, test as register} from 'node:test';
import {complaints, dress, hasFocus, launch, openPage, press, shows, tabTo, visit} from './browser.mjs';
import {FakeApi, full, sale} from './fake_api.mjs';
import {difference} from './pictures.mjs';
import {Service} from './service.mjs';

let browser;
const test = (name, body, timeout = 60_000) => register(name, {timeout}, body);
before(async () => { browser = await launch(); });
after(() => browser?.close());

/** A page that is logged in at a service of invented figures. */
async function consoleOf(t, {sales, isFrozen = false, beat = 1000, ...view} = {}) {
  const api = new FakeApi();
  api.beat = beat;
  api.isOpen = true;
  api.isFrozen = isFrozen;
  if (sales) api.sales = sales;
  await api.begin();
  t.after(() => api.end());
  const page = await pageOf(t, view);
  await page.goto(`${api.origin}/console`);
  await shows(page, sales?.length === 0 ? 'There is no sale yet' : 'admitted a second');
  return {api, page};
}

async function pageOf(t, view) {
  const page = await openPage(browser, view);
  t.after(() => page.close());
  return page;
}

async function serviceOf(t, sales, options) {
  const service = await Service.begin(sales, options);
  t.after(() => service.end());
  return service;
}

const copy = value => structuredClone(value);

/** Each view, and its heading. */
const views = [
  ['#/', 'Sales'], ['#/sales/tea', 'tea'], ['#/sales/tea/orders', 'tea'], ['#/sales/tea/letters', 'tea'],
  ['#/sales/tea/messages', 'tea'], ['#/sales/tea/payments', 'tea'], ['#/sales/tea/refunds', 'tea'], ['#/sales/tea/totals', 'tea'],
  ['#/sales/tea/order/TEA202601020003', 'tea'], ['#/payments', 'Payments'], ['#/locks', 'Locks'], ['#/numbers', 'Numbers'],
  ['#/proxies', 'Proxies'], ['#/journal', 'Journal'], ['#/nowhere', 'There is no such page'],
  ['#/sales/tea/toString', 'There is no such page'], ['#/constructor', 'There is no such page'], ['#/sales/milk', 'There is no sale “milk”'],
  ['#/sales/tea/orders/x', 'There is no such page'], ['#/sales/tea/order', 'There is no such page'], ['#/locks/x', 'There is no such page'],
];

/** Each list as its filter shows it. */
const filtered = [['#/sales/tea/payments?state=refunded', 'tea'], ['#/payments?state=waiting', 'Payments'], ['#/sales/tea/orders?state=expired&q=x', 'tea']];

/** What a row of a list must not do: break a figure, a number or a time, stand beside the next one without a line, have an empty line. */
const ragged = page => page.evaluate(() => {
  const found = [];
  const heads = ['At', 'Since', 'Issued', 'Day', 'Amount', 'Number', 'Order', 'Id', 'Units', 'State', 'Attempts', 'Failed', 'Provider', 'Last number'];
  for (const cell of document.querySelectorAll('.table .number, .table .fixed, .table [data-head], .totals dd, .facts dd')) {
    if (cell.matches('[data-head]:not(.number, .fixed)') && !heads.includes(cell.dataset.head)) continue;
    const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    for (let text; (text = texts.nextNode());) {
      const range = document.createRange();
      range.selectNodeContents(text);
      const lines = new Set([...range.getClientRects()].filter(({width}) => width > 1).map(({top}) => Math.round(top)));
      if (lines.size > 1) found.push(`“${text.data}” is broken`);
    }
  }
  for (const row of document.querySelectorAll('.table > div:not(.heads) > [role=row]:not(:last-child)'))
    if (getComputedStyle(row).borderBottomStyle === 'none' && getComputedStyle(row.lastElementChild).borderBottomStyle === 'none')
      found.push(`no line below “${row.innerText.slice(0, 40)}”`);
  for (const cell of document.querySelectorAll('[role=cell]:empty'))
    if (innerWidth < 640 && cell.getBoundingClientRect().height > 0) found.push(`${cell.dataset.head} has an empty line`);
  return [...new Set(found)];
});

for (const [name, view] of [['InLight', {}], ['InDark', {scheme: 'dark'}], ['At320Pixels', {width: 320}]]) {
  test(`Console.V50_AxeFindsNothing${name}`, async t => {
    const {page} = await consoleOf(t, {sales: [copy(full), sale('coffee')], ...view});
    for (const [hash, heading] of [...views, ...filtered]) {
      await visit(page, hash, heading);
      assert.deepEqual(await complaints(page), [], hash);
      assert.deepEqual(await ragged(page), [], hash);
      const {wide, room} = await page.evaluate(() => ({wide: document.documentElement.scrollWidth, room: innerWidth}));
      assert.ok(wide <= room, `${hash} is ${wide} wide where there are ${room}`);
    }
    assert.deepEqual(page.record.faults, []);
  }, 240_000);
}

test('Console.V50_AxeFindsNothingInRareStates', async t => {
  const {api, page} = await consoleOf(t, {sales: []});
  assert.deepEqual(await complaints(page), [], 'no sale');
  api.sales = [copy(full)];
  await shows(page, 'left of');
  await visit(page, '#/sales/tea', 'tea');
  await press(page, 'button[aria-haspopup=dialog].danger');
  await page.waitForSelector('dialog[open]');
  assert.deepEqual(await complaints(page), [], 'the dialog');
  await page.keyboard.press('Escape');
  api.cut(true);
  await shows(page, 'Connection lost');
  assert.deepEqual(await complaints(page), [], 'the banner');
  api.cut(false);
  api.isOpen = false;
  await press(page, '.banner button');
  await shows(page, 'Key of the shop');
  assert.deepEqual(await complaints(page), [], 'the login');
});

test('Console.V50_TheKeyboardAloneClosesASale', async t => {
  const service = await serviceOf(t, [{name: 'tea', stock: 20, type: 'TEA'}]);
  assert.equal((await service.buy('tea', 'ann')).status, 201);
  const page = await pageOf(t);
  await page.goto(`${service.origin}/console`);
  await shows(page, 'Key of the shop');
  await tabTo(page, 'Key of the shop');
  await page.keyboard.type(service.key);
  await page.keyboard.press('Enter');
  await shows(page, '19 left of 20');
  await tabTo(page, 'tea');
  await page.keyboard.press('Enter');
  await shows(page, 'Units left');
  await tabTo(page, 'Close sale …');
  await page.keyboard.press('Enter');
  await hasFocus(page, 'Type tea to confirm');
  await page.keyboard.type('te');
  assert.ok(await page.$eval('dialog button[type=submit]', button => button.disabled), 'it is not confirmed by half a name');
  await page.keyboard.press('Enter');  // and it does nothing
  await page.keyboard.type('a');
  await page.keyboard.press('Enter');
  await shows(page, 'The sale is over');
  await hasFocus(page, 'tea');  // what had the focus is gone: one reads on at the heading
  assert.equal((await service.buy('tea', 'bob')).status, 410);
  await tabTo(page, 'Journal');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => [...document.querySelectorAll('[role=row]')].some(row => /ann[^]*close sale[^]*tea[^]*done/.test(row.innerText)));
  assert.deepEqual(page.record.faults, []);
});

test('Console.V50_PicturesAreAsApproved', async t => {
  const {page} = await consoleOf(t, {sales: [copy(full), sale('coffee')], isFrozen: true});
  for (const [name, hash, heading, width, scheme] of [
    ['overview', '#/', 'Sales', 1280, 'light'], ['orders', '#/sales/tea/orders', 'tea', 1280, 'light'],
    ['sale_light', '#/sales/tea', 'tea', 1280, 'light'], ['sale_dark', '#/sales/tea', 'tea', 1280, 'dark'],
    ['sale_320', '#/sales/tea', 'tea', 320, 'light'],
  ]) {
    await dress(page, {width, scheme});
    await visit(page, hash, heading);
    if (name.startsWith('sale')) await page.waitForSelector('.uplot canvas');
    const {mean, most} = await difference(page, name);
    assert.ok(mean < 0.4 && most < 9, `${name} differs by ${mean} (mean), ${most} (most) of 99; it is in build/console_pictures`);
  }
});

test('Console.V51_NoForeignHostIsAsked', async t => {
  const service = await serviceOf(t, [{name: 'tea', stock: 20, type: 'TEA', price: 500, currency: 'CNY'}], ['--room', 'tea=50/200']);
  const page = await pageOf(t);
  await page.goto(`${service.origin}/console`);
  await page.type('input[type=password]', service.key);
  await page.keyboard.press('Enter');
  await shows(page, 'left of 20');
  for (const [hash, heading] of views) await visit(page, hash, heading);
  const foreign = page.record.urls.filter(url => !url.startsWith(`${service.origin}/`));
  assert.deepEqual(foreign, []);
  assert.deepEqual(await page.evaluate(() => globalThis.violations), []);
  assert.deepEqual(page.record.faults, []);
  const {bytes, paint} = await page.evaluate(() => {
    const all = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')];
    const files = new Map(all.filter(({name}) => name.includes('/console')).map(({name, encodedBodySize}) => [name, encodedBodySize]));
    return {bytes: [...files.values()].reduce((sum, size) => sum + size, 0),
            paint: performance.getEntriesByName('first-contentful-paint')[0].startTime};
  });
  console.log(`# the page has ${bytes} bytes over the wire; first paint after ${Math.round(paint)} ms`);
  assert.ok(bytes > 20_000 && bytes <= 70_000, `${bytes} bytes`);
});

test('Console.V51_TheBrowserHoldsThePolicy', async t => {  // so that counting none of its violations means something
  const {page} = await consoleOf(t);
  await page.evaluate(() => {
    document.body.insertAdjacentHTML('beforeend', '<img src="http://192.0.2.1/x.png" onerror="globalThis.isBroken = true"><p style="color:red">');
  });
  await page.waitForFunction(() => globalThis.violations.length >= 3);
  assert.equal(await page.evaluate(() => globalThis.isBroken), undefined);
});

test('Console.NamesFullOfMarkupAreText', async t => {
  const names = ['<img src=x onerror=alert(1)>', '"><script>alert(1)</script>', 'a/b?c#d%41&', `long${'-long'.repeat(40)}`, '‮drawkcab', '__proto__', '茶'];
  const {api, page} = await consoleOf(t, {width: 320, sales: names.map(name => sale(name, {trouble: '<b>bold</b>'}))});
  api.letters[0].reason = '<script>alert(2)</script>';
  for (const name of names) {
    await visit(page, `#/sales/${encodeURIComponent(name)}`, name);
    assert.equal(await page.$$eval('main img, main script, main b b', all => all.length), 0, name);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), name);
  }
  await visit(page, `#/sales/${encodeURIComponent(names[0])}/letters`, names[0]);
  await shows(page, '<script>alert(2)</script>');
  assert.deepEqual(page.record.faults, []);
});

test('Console.ALostConnectionKeepsTheLastFigures', async t => {
  const {api, page} = await consoleOf(t);
  await visit(page, '#/sales/tea', 'tea');
  api.cut(true);
  await shows(page, 'These are the figures of');
  const then = await page.$eval('.huge b', figure => figure.innerText);
  assert.match(then, /^\d,\d{3}$/);
  assert.equal(await page.$eval('.pulse', pulse => pulse.innerText), 'not connected');
  api.cut(false);
  await shows(page, 'Connected again');  // by itself
  await page.waitForFunction(() => !document.querySelector('.banner'));
});

test('Console.TwoHundredSalesAreFoundByName', async t => {
  const sales = Array.from({length: 200}, (_, i) => sale(`sale-${i}`, {dead: i === 150 ? 1 : 0}));
  const {page} = await consoleOf(t, {sales});
  assert.equal(await page.$eval('.sale-card h2', name => name.innerText), 'sale-150');  // the one that needs somebody
  await page.type('input[type=search]', 'sale-17');
  await page.waitForFunction(() => document.querySelectorAll('.sale-card').length === 11);
  await page.type('input[type=search]', 'x');
  await shows(page, 'No sale has “sale-17x” in its name');
});

test('Console.ASaleThatIsNotShownIsNotSaidToBeNone', async t => {
  const {api, page} = await consoleOf(t, {sales: Array.from({length: 75}, (_, i) => sale(`sale-${i}`))});
  api.salesInAll = 1000;
  await shows(page, '75 of 1,000 sales are shown');
  await page.type('input[type=search]', 'sale-900');
  await shows(page, 'No sale that is shown has “sale-900” in its name');
  await visit(page, '#/sales/sale-900', '“sale-900” is not among the sales that are shown');
});

test('Console.WhatTheStoreDoesNotSayIsNoFigure', async t => {
  const {api, page} = await consoleOf(t, {sales: [sale('tea', {dead: 1})]});
  await visit(page, '#/sales/tea', 'tea');
  await page.waitForSelector('.uplot canvas');
  const known = api.sales;
  const nothing = Object.fromEntries(['stock', 'sold', 'left', 'orders', 'waiting', 'dead', 'lag', 'admitted_per_s', 'in_transfer'].map(name => [name, null]));
  api.sales = [sale('tea', {...nothing, state: 'unknown', trouble: 'no reply in time', by_state: null})];
  api.trouble = 'no reply in time';
  await shows(page, 'unknown');
  await shows(page, '– left of –');
  await shows(page, 'That is not known now: no reply in time');
  assert.deepEqual(await complaints(page), []);
  assert.match(await page.$eval('[role=img][aria-label^="Units left"]', chart => chart.ariaLabel), /now [\d,]{3,}/);
  await visit(page, '#/', 'Sales');
  await page.evaluate(() => {
    globalThis.said = '';
    new MutationObserver(() => { said += document.querySelector('[role=status]').innerText; }).observe(document.body, {subtree: true, childList: true, characterData: true});
  });
  api.sales = known;
  api.trouble = '';
  await page.waitForFunction(() => said.includes('Sale tea: open'));
  assert.ok(!await page.evaluate(() => said.includes('a new dead letter')));
  assert.deepEqual(page.record.faults, []);
});

test('Console.ChartsGoOnWhenTheClockIsSetBack', async t => {
  const {api, page} = await consoleOf(t, {sales: [copy(full)]});
  await visit(page, '#/sales/tea', 'tea');
  const left = () => page.$eval('[role=img][aria-label^="Units left"]', chart => chart.ariaLabel);
  api.setBack = 3_600_000;
  Object.assign(api.sales[0], {left: 77, state: 'closed'});  // it stays at that
  await page.waitForFunction(() => document.querySelector('[role=img][aria-label^="Units left"]').ariaLabel.includes('now 77'));
  assert.match(await left(), /now 77, most 77/);
});

test('Console.ASaleIsClosedAgainWhereTheDatabaseWasAway', async t => {
  const {api, page} = await consoleOf(t, {sales: [copy(full)]});
  await visit(page, '#/sales/tea', 'tea');
  api.trouble = 'the database is away';
  const close = async label => {
    await tabTo(page, label);
    await page.keyboard.press('Enter');
    await page.waitForSelector('dialog[open] input');
    await page.keyboard.type('tea');
    await page.keyboard.press('Enter');
  };
  await close('Close sale …');
  await shows(page, 'The sale is over');
  api.trouble = '';
  await close('Close again …');
  await page.waitForFunction(() => !document.querySelector('dialog[open]'));
  assert.deepEqual(api.asked.map(({body}) => body), [{confirm: 'tea'}, {confirm: 'tea'}]);
});

test('Console.ARefusalStandsAtItsAction', async t => {
  const {api, page} = await consoleOf(t);
  await visit(page, '#/sales/tea', 'tea');
  await tabTo(page, 'Stock …');
  await page.keyboard.press('Enter');
  await page.type('dialog input[type=number]', '5');
  await page.$eval('dialog form', form => { form.noValidate = true; });  // the browser would refuse it before the service
  await page.type('dialog input[type=text]', 'tea');
  await page.keyboard.press('Enter');
  await page.waitForSelector('dialog .refusal[role=alert]');
  assert.match(await page.$eval('dialog .refusal', refusal => refusal.innerText), /More is sold than that\s+\d+ are sold/);
  await page.keyboard.press('Escape');
  await page.waitForFunction(() => !document.querySelector('dialog[open]'));
  await hasFocus(page, 'Stock …');
  assert.deepEqual(api.asked.at(-1).body, {confirm: 'tea', stock: 5});
});

test('Console.ALetterIsRevivedAndTheOtherSettled', async t => {
  const {api, page} = await consoleOf(t, {sales: [copy(full)]});
  await visit(page, '#/sales/tea/letters', 'tea');
  await tabTo(page, 'Revive TEA202601020001');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.querySelectorAll('.letter').length === 1);
  await tabTo(page, 'Settle … 1700-2');
  await page.keyboard.press('Enter');
  await hasFocus(page, 'Why (it stands in the journal)');
  await page.keyboard.type('buyer was told');
  await tabTo(page, 'Type tea to confirm', 3);
  await page.keyboard.type('tea');
  await page.keyboard.press('Enter');
  await shows(page, 'There are no dead letters');
  assert.deepEqual(api.asked.map(({path, body}) => [path.split('/').at(-1), body]),
    [['revive', null], ['settle', {confirm: 'tea', reason: 'buyer was told'}]]);
});

test('Console.TheRoomIsHeldAndLetGo', async t => {
  const {api, page} = await consoleOf(t, {sales: [copy(full)]});
  await visit(page, '#/sales/tea', 'tea');
  await tabTo(page, 'Pause the waiting room');
  await page.keyboard.press('Enter');
  await hasFocus(page, 'Resume the waiting room');  // it is the same button
  await page.keyboard.press('Enter');
  await tabTo(page, 'Rate');
  await page.keyboard.type('75');
  await page.keyboard.press('Enter');
  await shows(page, 'Rate set');
  assert.deepEqual(api.asked.map(({path, body}) => [path.split('/').at(-1), body]), [['pause', null], ['resume', null], ['rate', {rate: 75}]]);
});

const pause = ms => new Promise(resolve => setTimeout(resolve, ms));

/** The buttons of a view that change something, but those within dialogs, by what they are called. */
const verbs = async page => (await page.$$eval('main button', all => all.filter(button => !button.closest('dialog'))
  .map(button => button.getAttribute('aria-label') ?? button.innerText))).filter(name => !['More', 'Find', 'Refresh'].includes(name));

/** Presses a control and fills in what it asks for. */
const begin = async (page, name) => {
  await page.waitForFunction(wanted => [...document.querySelectorAll('main button')].filter(each => !each.closest('dialog'))
    .some(each => (each.getAttribute('aria-label') ?? each.innerText) === wanted), {timeout: 15_000}, name);
  await page.evaluate(async wanted => {
    const button = [...document.querySelectorAll('main button')].filter(each => !each.closest('dialog'))
      .find(each => (each.getAttribute('aria-label') ?? each.innerText) === wanted);
    const fill = (field, value) => {
      field.value = value;
      field.dispatchEvent(new Event('input', {bubbles: true}));
    };
    const number = button.closest('form')?.querySelector('input[type=number]');
    if (number) fill(number, 7);
    button.click();
    await new Promise(resolve => setTimeout(resolve, 50));
  }, name);
  await fillIn(page);
};

const fillIn = page => page.evaluate(async () => {
  const form = document.querySelector('dialog[open] form');
  const name = form?.querySelector('b.name');
  if (!name) return;
  const fill = (field, value) => {
    field.value = value;
    field.dispatchEvent(new Event('input', {bubbles: true}));
  };
  for (const field of form.querySelectorAll('input')) fill(field, field.type === 'number' ? field.max || 99999 : 'why');
  fill([...form.querySelectorAll('input')].at(-1), name.innerText);
  await new Promise(resolve => setTimeout(resolve, 50));
});

const send = page => page.evaluate(() => document.querySelector('dialog[open] form')?.requestSubmit());

/** Presses a control, fills in what it asks for, and sends that. */
const use = async (page, name) => {
  await begin(page, name);
  await send(page);
};

test('Console.SV12_APaymentIsSettledAndAMessageSentAgain', async t => {
  const {api, page} = await consoleOf(t, {sales: [copy(full)]});
  await visit(page, '#/sales/tea/payments', 'tea');
  await begin(page, 'Settle … evt_1');
  await shows(page, 'Paid for order TEA202601020001 of buyer-1, awaiting');
  await send(page);
  await shows(page, 'No payment needs to be looked at');
  await visit(page, '#/sales/tea/messages', 'tea');
  await shows(page, 'Not delivered since');
  await shows(page, 'answered 500');
  await use(page, 'Send now messages 7000000000000001:2');
  await shows(page, 'on its way');
  await visit(page, '#/sales/tea/refunds', 'tea');
  await use(page, 'Send now refunds 7000000000000001:2');
  await page.waitForFunction(() => document.querySelector('.done'));
  assert.deepEqual(api.asked.map(({path, body}) => [decodeURIComponent(path).split('/').slice(4).join('/'), body]), [
    ['acme/evt_1/settle', {confirm: 'acme', reason: 'why'}],
    ['tea/messages/7000000000000001:2/resend', null], ['tea/refunds/7000000000000001:2/resend', null]]);
  assert.deepEqual(page.record.faults, []);
});

test('Console.SV12_WhatTheReceiverHasStoppedIsSaidAndBegunAgain', async t => {
  const stopped = copy(full);
  stopped.messages = {...stopped.messages, dead: 0, failing: 0, stopped: 4, stopped_since: '2026-01-02T02:00:00.000Z', last_failure: 'http://shop.example answered 410'};
  const {api, page} = await consoleOf(t, {sales: [stopped]});
  await shows(page, 'webhooks stopped by their receiver since');
  await visit(page, '#/sales/tea/messages', 'tea');
  await shows(page, 'Stopped by the receiver since');
  await shows(page, 'answered 410');
  await shows(page, 'its receiver wants no more');
  const rows = await page.$$eval('main [role=rowgroup]:not(.heads) [role=row]', all => all.map(each => each.innerText));
  for (const row of rows) assert.match(row, /^(?![^]*(next|tried again))[^]*\bstopped\b/);
  assert.equal(rows.length, 3);
  await page.locator('button ::-p-text(Send all again)').click();
  await shows(page, '3 messages on the way');
  assert.equal(api.asked.at(-1).path, '/v1/operate/sales/tea/messages/replay');
  assert.deepEqual(page.record.faults, []);
});

test('Console.SV20_ARoomThatBelievesThatNothingIsLeftIsToldOtherwise', async t => {
  const stuck = copy(full);
  stuck.room = {...stuck.room, state: 'sold_out', units_left: 0};
  const {api, page} = await consoleOf(t, {sales: [stuck]});
  await visit(page, '#/sales/tea', 'tea');
  await shows(page, 'Nobody is let in');
  await page.locator('button ::-p-text(Tell it what is left)').click();
  await shows(page, 'It goes on');
  const {path, body} = api.asked.at(-1);
  assert.equal(path, '/v1/operate/rooms/tea/units');
  assert.ok(body.units > 3000, 'what the sale has by now');
  assert.deepEqual(page.record.faults, []);
});

test('Console.SV20_AnOrderIsFoundLookedAtAndTakenBack', async t => {
  const {api, page} = await consoleOf(t, {sales: [copy(full)]});
  await visit(page, '#/sales/tea/orders', 'tea');
  await page.select('main select', 'paid');
  await page.waitForFunction(() => document.querySelectorAll('main [role=rowgroup] [role=row]').length === 2);
  await press(page, 'main [role=cell] a');
  await shows(page, 'History');
  await shows(page, 'buyer-3');
  await use(page, 'Refund …');
  await shows(page, '1 taken back');
  assert.deepEqual(api.asked.at(-1).body, {confirm: 'tea', units: 1, reason: 'why'});
  await page.waitForFunction(() => ![...document.querySelectorAll('main button')].some(button => button.innerText === 'Refund …'));
  await visit(page, '#/sales/tea/totals', 'tea');
  await shows(page, '(940)');
  await shows(page, 'CN¥4,690.00');
  await shows(page, 'CN¥5.00');
  assert.deepEqual(page.record.faults, []);
});

test('Console.SV20_WhoOnlyReadsHasNoButtons', async t => {
  const {api, page} = await consoleOf(t, {sales: [copy(full)]});
  api.mayAct = false;
  await page.reload();
  await shows(page, 'admitted a second');
  for (const [hash, heading] of views.filter(([, name]) => ['tea', 'Payments'].includes(name))) {
    await visit(page, hash, heading);
    assert.deepEqual(await verbs(page), [], hash);
    assert.ok(!/Audit|Change/.test(await page.$$eval('main h2', all => all.map(each => each.innerText).join())), 'no card is empty');
  }
  assert.deepEqual(page.record.faults, []);
});

// Until no more of them come: parts of a page are asked for one after another.
async function allVerbs(page) {
  let names = await verbs(page);
  for (let same = 0; same < 4;) {
    await pause(100);
    const now = await verbs(page);
    same = now.length === names.length ? same + 1 : 0;
    names = now;
  }
  return names;
}

// What a control has begun is shown by the next snapshots, and only then answered: its place may be gone.
for (const [way, leave] of [['WhileOneWaits', () => {}], ['WhenOneHasGoneOn', (page, api, n) => (n % 2 ? visit(page, '#/', 'Sales') : api.sales.pop())]]) {
  test(`Console.NU12_AnAnswerMayComeAfterTheNextSnapshot${way}`, async t => {
    const {api, page} = await consoleOf(t, {sales: [copy(full)], beat: 50});
    const before_all = copy({letters: api.letters, payments: api.payments, refunds: api.refunds});
    let used = 0;
    for (const [hash, heading] of views.filter(([, name]) => ['tea', 'Payments'].includes(name))) {
      const renew = () => Object.assign(api, {sales: [copy(full)], ...copy(before_all), orders: new Map(), delay: 0});
      renew();
      await visit(page, '#/', 'Sales');
      await visit(page, hash, heading);
      for (const name of await allVerbs(page)) {
        renew();
        await visit(page, '#/', 'Sales');
        await visit(page, hash, heading);
        const before = api.asked.length;
        api.delay = 150;
        await use(page, name);
        while (api.asked.length === before) await pause(20);
        ++used;
        await leave(page, api, used);
        while (api.pending) await pause(20);
        await page.waitForFunction(() => !document.querySelector('dialog[open]'));
        await pause(50);
        assert.deepEqual(page.record.faults, [], `${hash}: ${name}`);
      }
    }
    assert.equal(used, 32);
  }, 120_000);
}

// Another operator changes what a dialog is about while its reason is typed: nothing is done of what nobody saw.
test('Console.NU12_WhatAnotherHasChangedIsShownBeforeItIsActedOn', async t => {
  const {api, page} = await consoleOf(t, {sales: [copy(full)], beat: 50});
  const before_all = copy({payments: api.payments, refunds: api.refunds});
  let used = 0;
  for (const [hash, heading] of [['#/sales/tea/order/TEA202601020003', 'tea'], ['#/sales/tea/order/TEA202601020001', 'tea'],
                                 ['#/sales/tea/payments', 'tea'], ['#/payments?state=waiting', 'Payments'], ['#/sales/tea/refunds', 'tea']]) {
    const renew = () => Object.assign(api, {...copy(before_all), orders: new Map(), done: [], delay: 0});
    renew();
    await visit(page, '#/', 'Sales');
    await visit(page, hash, heading);
    for (const name of (await allVerbs(page)).filter(each => each.includes('…'))) {
      renew();
      await visit(page, '#/', 'Sales');
      await visit(page, hash, heading);
      await begin(page, name);
      const seen = await page.$eval('dialog[open]', dialog => dialog.innerText);
      api.interfere();
      await pause(300);  // snapshots come and go
      assert.equal(await page.$eval('dialog[open]', dialog => dialog.innerText), seen, `${hash}: ${name} speaks of what was seen`);
      api.delay = 150;
      const asked = api.asked.length;
      await send(page);
      while (api.asked.length === asked || api.pending) await pause(20);
      assert.deepEqual(api.done, [], `${hash}: ${name} acts on what nobody saw`);
      await page.waitForFunction(() => document.querySelector('dialog[open] .refusal')?.innerText.includes('now it is'));
      const told = await page.$eval('dialog[open]', dialog => dialog.innerText);
      assert.doesNotMatch(told, /[{}]|undefined|NaN/, name);
      const may = await page.$('dialog[open] button[type=submit]');
      assert.equal(Boolean(may), !name.includes('refund '), name);
      await fillIn(page);
      if (['Cancel …', 'Refund …'].includes(name)) await shows(page, 'CN¥10.00 goes back to the buyer');
      await (may ? send(page) : page.keyboard.press('Enter'));  // the focus is at what one may do
      await page.waitForFunction(() => !document.querySelector('dialog[open]'));
      assert.equal(api.done.length, may ? 1 : 0, name);
      assert.deepEqual(page.record.faults, [], `${hash}: ${name}`);
      ++used;
    }
  }
  assert.equal(used, 16);
}, 120_000);

test('Console.NU12_TwoOperatorsTakeBackWhatTheySaw', async t => {
  const service = await serviceOf(t, [{name: 'tea', stock: 20, type: 'TEA', price: 500, currency: 'CNY'}]);
  const {id, number} = await (await service.buy('tea', 'kim', 3)).json();
  const page = await pageOf(t);
  await page.goto(`${service.origin}/console#/sales/tea/order/${number}`);
  await page.waitForSelector('input[type=password]');
  await page.type('input[type=password]', service.key);
  await page.keyboard.press('Enter');
  await begin(page, 'Cancel …');
  await shows(page, 'No money goes back');
  const other = await fetch(`${service.origin}/v1/operate/sales/tea/orders/${id}/refund`, {
    method: 'POST', body: JSON.stringify({confirm: 'tea', units: 1, reason: 'broken'}),
    headers: {'Content-Type': 'application/json', Authorization: `Bearer ${service.key}`, 'Idempotency-Key': 'other'}});
  assert.equal(other.status, 200);
  await send(page);
  await shows(page, 'Taken back: it was none, now it is 1');
  await shows(page, 'Units, of 2');
  await page.keyboard.press('Escape');
  await page.waitForFunction(() => document.querySelector('.fields').innerText.includes('Taken back'));
  assert.deepEqual(page.record.faults, []);
});

test('Console.WhatIsOverIsSoldNoMoreAndMayNeedSomebody', async t => {
  const {page} = await consoleOf(t, {sales: [sale('tea', {left: 7, stock: 7, admitted_per_s: 0, payments: {waiting: 1, asking: 0, flagged: 2}}),
    sale('mug', {state: 'closed', left: 18, dead: 1}), sale('old', {state: 'archived', left: 40, dead: 5})]});
  const totals = Object.fromEntries(await page.$$eval('.totals > div', all => all.map(each => [each.querySelector('dt').innerText, each.querySelector('dd').innerText])));
  assert.equal(totals['units left'], '7');
  assert.equal(totals['to look at'], '8');
});

test('Console.SV12_TextsAreSo', async t => {
  const one = copy(full);
  Object.assign(one, {workers: [], refunds_failing: 1, room: {...one.room, waiting: 0, eta_s: 0}, messages: {...one.messages, stopped: 1}});
  const {page} = await consoleOf(t, {sales: [one]});
  const text = () => page.evaluate(() => document.querySelector('main').innerText);
  assert.match(await text(), /\b1 refund fails\b/, 'E1');
  await visit(page, '#/sales/tea', 'tea');
  assert.match(await text(), /No worker is at it just now\.\s+This process: 1,197 recorded/, 'A2');
  assert.match(await text(), /\b0 waiting\n/, 'A4');
  await visit(page, '#/sales/tea/messages', 'tea');
  assert.match(await text(), /\b1 message waits\b/);
  await visit(page, '#/payments?state=waiting', 'Payments');
  assert.match(await text(), /no order here has that number yet/, 'B4');
});

test('Console.SV12_WhatWasDoneIsToldForAWhile', async t => {  // I2
  const {page} = await consoleOf(t, {sales: [copy(full)]});
  await visit(page, '#/sales/tea', 'tea');
  await page.evaluate(() => {
    const later = globalThis.setTimeout;
    globalThis.setTimeout = (work, ms) => later(work, ms / 10);
  });
  await use(page, 'Set: Rate');
  await shows(page, 'Rate set');
  await page.waitForFunction(() => !document.body.innerText.includes('Rate set'), {timeout: 5000});
});

test('Console.TheRowOfTabsShowsWhereOneIs', async t => {
  const {page} = await consoleOf(t, {sales: [copy(full)], width: 320});
  const hidden = () => page.$$eval('nav', all => all.map(nav => [nav.getBoundingClientRect(), nav.querySelector('[aria-current]')])
    .filter(([row, here]) => here && (here.getBoundingClientRect().right > row.right + 1 || here.getBoundingClientRect().left < row.left - 1))
    .map(([, here]) => here.innerText));
  for (const [hash, heading] of views.filter(([, name]) => !name.startsWith('There'))) {
    await visit(page, hash, heading);
    assert.deepEqual(await hidden(), [], hash);
    await page.reload();
    await visit(page, hash, heading);
    assert.deepEqual(await hidden(), [], `${hash} after a reload`);
  }
});

test('Console.SV12_AnOrderAndAListFollowByThemselves', async t => {
  const {api, page} = await consoleOf(t, {sales: [copy(full)]});
  await visit(page, '#/sales/tea/order/TEA202601020001', 'tea');
  await shows(page, 'As of');
  api.interfere();
  await shows(page, 'Taken back');
  await shows(page, 'acme answered 500');
  api.isMute = true;
  await tabTo(page, 'Refresh');
  const looks = api.looks;
  await page.keyboard.press('Enter');
  while (api.looks === looks) await pause(20);
  api.isMute = false;
  await visit(page, '#/sales/tea/orders?state=paid', 'tea');
  assert.equal((await page.$$('main [role=cell] a')).length, 5);
  for (const n of [1, 2, 4, 5]) api.orders.delete(n);
  await page.waitForFunction(() => document.querySelectorAll('main [role=cell] a').length === 1);
  assert.deepEqual(page.record.faults, []);
});

test('Console.SV12_AFilterStandsInTheAddress', async t => {
  const {api, page} = await consoleOf(t, {sales: [copy(full)]});
  api.strays = 1;
  await shows(page, '1 payment of sales that nobody knows');
  await press(page, '.refusal a');
  await shows(page, 'MLK2026010200001');
  await page.reload();
  await shows(page, 'MLK2026010200001');
  await page.select('main select', 'refunded');
  await shows(page, 'the buyer called twice');
  await press(page, 'main [role=cell] a');  // the order's page
  await shows(page, 'History');
  await page.goBack();
  await shows(page, 'the buyer called twice');
  await page.goBack();
  await shows(page, 'MLK2026010200001');
  assert.deepEqual(page.record.faults, []);
});

test('Console.WhileAStoreOrADatabaseIsAwayNothingVanishes', async t => {
  const {api, page} = await consoleOf(t, {sales: [copy(full)], beat: 50});
  api.strays = 1;
  await shows(page, '1 payment of sales that nobody knows');
  await visit(page, '#/sales/tea', 'tea');
  const tab = () => page.$$eval('.tabs a', all => all.find(each => each.innerText.startsWith('Webhooks')).innerText);
  assert.equal(await tab(), 'Webhooks 5');
  Object.assign(api, {isHanging: true, delay: 200});
  await shows(page, 'as of');
  assert.match(await tab(), /^Webhooks 5 at \d\d:\d\d:\d\d$/);
  await use(page, 'Pause the waiting room');
  await shows(page, 'It is not known whether this was done');
  await pause(300);  // it stays there
  assert.ok(!(await page.evaluate(() => document.body.innerText)).includes('same key'), 'nobody here has a key');
  assert.match(await page.$eval('.refusal', refusal => refusal.closest('.card').innerText), /^Waiting room/);
  assert.deepEqual(await complaints(page), []);
  await visit(page, '#/', 'Sales');
  const text = await page.evaluate(() => document.querySelector('main').innerText);
  assert.match(text, /^1 payment of sales that nobody knows \(as of \d\d:\d\d:\d\d\)$/m);
  assert.match(text, /^3 messages not delivered \(as of \d\d:\d\d:\d\d\)$/m);
  await visit(page, '#/sales/tea', 'tea');
  api.isHanging = false;
  await page.waitForFunction(() => !document.body.innerText.includes('as of'));
  assert.equal(await tab(), 'Webhooks 5');
  assert.deepEqual(page.record.faults, []);
});

test('Console.ALoginThatEndedSaysWhy', async t => {
  const {api, page} = await consoleOf(t);
  api.isOpen = false;
  await page.reload();
  await page.waitForSelector('input[type=password]');
  await page.type('input[type=password]', 'sk.ann.secret');
  await page.keyboard.press('Enter');
  await shows(page, 'admitted a second');
  await pause(1500);
  api.logOut();
  await shows(page, 'Your login has ended');
  assert.ok(!(await page.evaluate(() => document.body.innerText)).includes('Connection lost'));
});

test('Console.AWrongKeyIsRefusedAtTheField', async t => {
  const {api, page} = await consoleOf(t);
  api.isOpen = false;
  await page.reload();
  await page.waitForSelector('input[type=password]');
  await page.type('input[type=password]', 'sk.ann.wrong');
  await page.keyboard.press('Enter');
  await page.waitForSelector('form .refusal[role=alert]');
  await page.$eval('input[type=password]', field => field.select());
  await page.type('input[type=password]', 'sk.ann.secret');
  await page.keyboard.press('Enter');
  await shows(page, 'admitted a second');
  await shows(page, 'Logged in');
  await press(page, '.connection button');
  await shows(page, 'Key of the shop');
});
