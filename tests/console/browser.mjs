// A browser for the tests, and what they ask of it: Chromium of Debian, driven by puppeteer-core.
import {execFileSync} from 'node:child_process';
import {readFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {fileURLToPath} from 'node:url';

const modules = fileURLToPath(new URL('../../build/browser/node_modules/', import.meta.url));
const require = createRequire(`${modules}x.js`);
const puppeteer = require('puppeteer-core');
const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

function chromium() {
  try {
    return execFileSync('sh', ['-c', 'command -v chromium'], {encoding: 'utf8'}).trim();
  } catch {
    throw new Error('There is no chromium: scripts/install_packages test installs it.');
  }
}

export const launch = () => puppeteer.launch({
  executablePath: chromium(), headless: true, env: {...process.env, TZ: 'UTC'},
  timeout: 120_000,  // on a busy machine it takes more than half a minute to begin
  // Debian's sandbox refuses root; what is shown here is our own page.
  args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu', '--force-color-profile=srgb', '--lang=en'],
});

/** As a screen of that width, in light or dark. */
export async function dress(page, {width = 1280, height = 860, scheme = 'light'}) {
  await page.setViewport({width, height});
  await page.emulateMediaFeatures([{name: 'prefers-color-scheme', value: scheme}, {name: 'prefers-reduced-motion', value: 'reduce'}]);
}

/** A page that keeps a record of what it asks for and complains of. Each case has an origin of its own, and so shares no figures. */
export async function openPage(browser, view = {}) {
  const page = await browser.newPage();
  await dress(page, view);
  const record = {urls: [], faults: []};
  page.on('request', request => record.urls.push(request.url()));
  page.on('pageerror', error => record.faults.push(`exception: ${error.message}`));
  page.on('console', message => {
    if (message.type() === 'error' && !/status of (401|404|409|412|422|503)|ERR_/.test(message.text())) record.faults.push(message.text());
  });
  await page.evaluateOnNewDocument(() => {
    globalThis.violations = [];
    addEventListener('securitypolicyviolation', event => globalThis.violations.push(`${event.violatedDirective} ${event.blockedURI}`));
  });
  return Object.assign(page, {record});
}

/** Waits until the page shows the text. */
export const shows = (page, text, timeout = 15_000) =>
  page.waitForFunction(wanted => document.body.innerText.includes(wanted), {timeout, polling: 50}, text);

/** Goes to a view, and waits for its heading and for what it asks for. */
export async function visit(page, hash, heading) {
  await page.evaluate(to => { location.hash = to; }, hash);
  await page.waitForFunction(
    wanted => document.querySelector('main h1')?.innerText === wanted && !document.body.innerText.includes('Asking …'),
    {timeout: 15_000, polling: 50}, heading);
}

/** Clicks what is there now: with new figures each second it may be drawn anew, and what offers to connect again goes by itself. */
export const press = (page, selector) => page.evaluate(wanted => document.querySelector(wanted)?.click(), selector);

/** What axe-core has against the page as it stands, in words. */
export async function complaints(page) {
  if (!await page.evaluate(() => 'axe' in globalThis)) await page.evaluate(axe);
  const {violations} = await page.evaluate(() => globalThis.axe.run({resultTypes: ['violations']}));
  return violations.map(({id, help, nodes}) => `${id}: ${help}: ${nodes.slice(0, 3).map(({html}) => html.slice(0, 200)).join(' | ')}`);
}

/** The accessible name of what has the focus. */
const focused = page => page.evaluate(() => {
  const at = document.activeElement;
  return (at.getAttribute('aria-label') ?? at.labels?.[0]?.innerText ?? at.innerText ?? at.tagName).trim();
});

/** Waits until that has the focus: a page gives it when it is drawn. */
export async function hasFocus(page, name, patience = 10_000) {
  const until = Date.now() + patience;
  while (await focused(page) !== name)
    if (Date.now() > until) throw new Error(`'${await focused(page)}' has the focus, not '${name}'`);
}

/** Presses Tab until something of that name has the focus, as somebody without a mouse does. */
export async function tabTo(page, name, most = 80) {
  for (let i = 0; i < most; ++i) {
    await page.keyboard.press('Tab');
    if (await focused(page) === name) return;
  }
  throw new Error(`Tab does not lead to '${name}'`);
}
