// The program sluice-serve as a process, with a folder of its own.
import {execFileSync, spawn} from 'node:child_process';
import {mkdtempSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {fileURLToPath} from 'node:url';

const program = process.env.SLUICE_SERVE ?? fileURLToPath(new URL('../../build/release/sluice-serve', import.meta.url));

export class Service {
  /** `sales`: as --sales takes them. */
  static async begin(sales, options = []) {
    const service = new Service();
    service.folder = mkdtempSync(join(tmpdir(), 'sluice-console-'));
    const made = execFileSync(program, ['key', '--id', 'ann', '--scopes', 'operate'], {encoding: 'utf8'});
    [service.key] = made.match(/sk\.\S+/);
    const [line] = made.match(/ann operate \w+/);
    writeFileSync(join(service.folder, 'keys'), `${line}\n`, {mode: 0o600});
    writeFileSync(join(service.folder, 'sales.json'), JSON.stringify(sales));
    service.process = spawn(program, ['--listen', '127.0.0.1:0', '--health', '127.0.0.1:0', '--notice', '0s', '--json',
      '--data', service.folder, '--sales', join(service.folder, 'sales.json'), '--shop-keys', join(service.folder, 'keys'), ...options],
      {cwd: service.folder, stdio: ['ignore', 'pipe', 'inherit']});
    service.origin = `http://127.0.0.1:${await service.#port()}`;
    return service;
  }

  #port() {
    return new Promise((resolve, reject) => {
      let said = '';
      this.process.stdout.on('data', data => {
        said += data;
        const port = said.match(/"port": ?(\d+)/);
        if (port) resolve(port[1]);
      });
      this.process.on('exit', code => reject(new Error(`sluice-serve ended with ${code}: ${said}`)));
    });
  }

  buy(sale, buyer, units = 1, headers = {}) {
    return fetch(`${this.origin}/v1/sales/${sale}/orders`, {
      method: 'POST', body: JSON.stringify({units}),
      headers: {'Content-Type': 'application/json', 'Sluice-Buyer': buyer, 'Idempotency-Key': `${buyer}-1`, ...headers}});
  }

  async end() {
    this.process.kill('SIGTERM');
    await new Promise(resolve => (this.process.exitCode === null ? this.process.on('exit', resolve) : resolve()));
    rmSync(this.folder, {recursive: true, force: true});
  }
}
