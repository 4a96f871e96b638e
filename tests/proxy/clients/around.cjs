// What the scripts of node share: a list of checks, waiting, and the proxy's administration.
const fs = require('node:fs');
const net = require('node:net');

const patience = 60_000;

async function until(holds) {
  for (const end = Date.now() + patience; !(await holds()); ) {
    if (Date.now() > end) throw new Error('it does not come');
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/// One command to the proxy's administration; an error throws.
function administer(command) {
  return new Promise((resolve, reject) => {
    const admin = net.connect(process.env.ADMIN, () => admin.write(`${command}\r\n`));
    admin.setTimeout(patience, () => admin.destroy(new Error(`no answer to ${command}`)));
    admin.on('error', reject);
    admin.once('data', (reply) => {
      admin.destroy();
      if (reply.toString().startsWith('-')) reject(new Error(reply.toString()));
      else resolve();
    });
  });
}

/// Gives `body` a function that changes the proxy's file, and has it read by RELOAD or UPGRADE.
async function around_restarts(body) {
  const text = fs.readFileSync(process.env.CONFIG, 'utf8');
  let timeout = 9000;
  await body((command) => {
    fs.writeFileSync(process.env.CONFIG, text.replace('timeout: 10000', `timeout: ${++timeout}`));
    return administer(command);
  });
}

const checks = [];
function check(name, body) {
  checks.push([name, body]);
}

/// Does the checks one after another, tells how each went, and ends the process.
async function run_checks() {
  let failures = 0;
  for (const [name, body] of checks) {
    const too_late = new Promise((_, reject) => setTimeout(() => reject(new Error('it takes too long')), patience).unref());
    try {
      await Promise.race([body(), too_late]);
      console.log(`ok: ${name}`);
    } catch (error) {
      console.log(`FAILED: ${name}:`, error);
      ++failures;
    }
  }
  process.exit(failures === 0 ? 0 : 1);
}

/// The proxy spreads keys over servers and has an administration; the engine at a port has neither.
const is_proxy = process.env.ADMIN !== undefined;

module.exports = { around_restarts, check, is_proxy, run_checks, until };
