// The pages for buyers in a browser: each page in each state and language, at three widths, in light and dark. What they are is
// written by StorefrontFile.TheGalleryIsWrittenForTheBrowser, of tests/server/pages; two cases use the program itself.
//   SLUICE_LONG=1: every page in every language at every width, each looked at by axe; else each page in one language at 320 px,
//   and a tenth of them at every width and by axe
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {mkdtempSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {createServer} from 'node:http';
import {after, before, test as register} from 'node:test';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {fileURLToPath} from 'node:url';
import {complaints, dress, launch, openPage, shows} from './browser.mjs';
import {Service} from './service.mjs';

const isLong = Boolean(process.env.SLUICE_LONG);
const program = process.env.SLUICE_PAGES_TEST ?? fileURLToPath(new URL('../../build/release/tests/server/server_pages_test', import.meta.url));
const pages = fileURLToPath(new URL('../../pages/', import.meta.url));
const widths = [320, 768, 1280];
const png = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==', 'base64');

let browser;
let folder;
let server;
let gallery;
const test = (name, body) => register(name, {timeout: isLong ? 3_600_000 : 120_000}, body);

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-pages-'));
  execFileSync(program, ['--gtest_filter=*TheGalleryIsWrittenForTheBrowser'],
    {env: {...process.env, SLUICE_GALLERY: join(folder, 'gallery.json')}});
  gallery = JSON.parse(readFileSync(join(folder, 'gallery.json'), 'utf8'));
  server = createServer((request, response) => {
    const {pathname} = new URL(request.url, 'http://pages');
    if (pathname.endsWith('.css') || pathname.endsWith('.js')) {
      response.setHeader('Content-Type', pathname.endsWith('.css') ? 'text/css' : 'text/javascript');
      return response.end(readFileSync(join(pages, pathname.split('/').at(-1))));
    }
    if (pathname.includes('/pictures/')) return response.setHeader('Content-Type', 'image/png').end(png);
    const shown = gallery[Number(pathname.slice(1))];
    if (!shown) return response.writeHead(404).end();
    for (const [name, value] of shown.fields) response.appendHeader(name, value);
    response.setHeader('Content-Type', 'text/html; charset=utf-8');
    response.end(shown.body);
  });
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
  browser = await launch();
});
after(async () => {
  await browser?.close();
  server?.closeAllConnections();
  server?.close();
  rmSync(folder, {recursive: true, force: true});
});

/** What sticks out of a page, in words. */
const wide = page => page.evaluate(() => {
  if (document.documentElement.scrollWidth <= innerWidth) return '';
  const out = [...document.body.querySelectorAll('*')].filter(node => node.getBoundingClientRect().right > innerWidth);
  return `${document.documentElement.scrollWidth} wide: ${out.map(node => node.outerHTML.slice(0, 120)).join(' | ')}`;
});

test('Pages.NU11_NoPageScrollsSidewaysAndAxeFindsNothing', async t => {
  const page = await openPage(browser, {width: 320});
  t.after(() => page.close());
  const languages = [...new Set(gallery.map(({language}) => language))];
  const names = gallery.filter(({language}) => language === languages[0]).map(({name}) => name);
  assert.ok(languages.length >= 3 && names.length > 140);
  let looks = 0;
  let heard = 0;
  const seen = new Set();
  for (const [at, {name, language, body}] of gallery.entries()) {
    const i = names.indexOf(name);
    if (seen.has(body)) continue;  // nobody's place is shown of a sale that is over, say
    seen.add(body);
    if (!isLong && languages[i % languages.length] !== language) continue;
    const what = `${name}, ${language}`;
    await page.goto(`http://127.0.0.1:${server.address().port}/${at}`);
    assert.equal(await page.evaluate(() => document.documentElement.lang), language, what);
    const isWhole = isLong || i % 10 === 0;
    for (const width of isWhole ? widths : widths.slice(0, 1)) {
      await dress(page, {width, scheme: i % 2 ? 'dark' : 'light'});
      assert.equal(await wide(page), '', `${what} at ${width}`);
      ++looks;
      if (!isWhole) continue;
      assert.deepEqual(await complaints(page), [], `${what} at ${width}`);
      ++heard;
    }
  }
  assert.deepEqual(await page.evaluate(() => globalThis.violations), []);
  assert.deepEqual(page.record.faults, []);
  console.log(`# ${names.length} pages and states, ${languages.length} languages: ${looks} widths looked at, ${heard} by axe`);
});

test('Pages.APageThatIsTooWideIsFound', async t => {  // so that finding none means something
  const page = await openPage(browser, {width: 320});
  t.after(() => page.close());
  await page.goto(`http://127.0.0.1:${server.address().port}/0`);
  await page.evaluate(() => {
    document.querySelector('main').insertAdjacentHTML('beforeend', '<img>');
    document.querySelector('main').style.width = '600px';
  });
  assert.match(await wide(page), /wide/);
  assert.match((await complaints(page)).join(), /image-alt/);
});

async function shopOf(t, options = [], shop = {}) {
  writeFileSync(join(folder, 'shop.json'), JSON.stringify(shop));
  writeFileSync(join(folder, 'tea.png'), png);
  const service = await Service.begin([{name: 'tea', stock: 20, type: 'TEA', price: 500, currency: 'CNY'}],
    ['--shop', join(folder, 'shop.json'), ...options]);
  t.after(() => service.end());
  const page = await openPage(browser, {width: 320});
  t.after(() => page.close());
  return {service, page};
}

test('Pages.SV13_AShopIsShownInItsColoursAndLanguages', async t => {
  const {service, page} = await shopOf(t, [], {
    name: 'Tea House', colours: {light: {accent: '#7a1f1f', paper: '#fff8f0'}},
    sales: {tea: {name: {en: 'Red tea', de: 'Roter Tee'}, text: 'From Wuyi.', picture: 'tea.png', 'picture-text': 'A tin'}}});
  await page.setExtraHTTPHeaders({'Accept-Language': 'de'});
  await page.goto(`${service.origin}/sales/tea`);
  await shows(page, 'Roter Tee');
  assert.equal(await page.$eval('button', button => getComputedStyle(button).backgroundColor), 'rgb(122, 31, 31)');
  assert.ok(await page.$eval('.picture', picture => picture.complete && picture.naturalWidth > 0));
  assert.deepEqual(await complaints(page), []);
  const paints = [];
  for (let i = 0; i < 7; ++i) {
    await page.reload();
    await page.waitForFunction(() => performance.getEntriesByName('first-contentful-paint').length > 0);
    paints.push(await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0].startTime));
  }
  console.log(`# first paint of a sale, median of seven: ${Math.round(paints.sort((a, b) => a - b)[3])} ms`);
  await page.click('a[hreflang=zh]');
  await shows(page, '立即购买');
  await page.click('form.buy button');
  await shows(page, '订单 TEA');
  await shows(page, 'CNY 5.00');
  assert.equal(await wide(page), '');
  assert.deepEqual(await page.evaluate(() => globalThis.violations), []);
  assert.deepEqual(page.record.faults, []);
});

test('Pages.NU17_TheRootLeadsToASale', async t => {
  const {service, page} = await shopOf(t);
  await page.goto(service.origin);
  assert.deepEqual(await complaints(page), []);
  await page.click('li a');
  await page.waitForSelector('form.buy');
  assert.ok((await fetch(service.origin)).headers.get('content-type').includes('json'));
});
