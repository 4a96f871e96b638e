// The operators' API: what is asked, and how a refusal is told.

/** What the service refused, or that it cannot be reached, as Problem Details tell it (RFC 9457). */
export class Problem extends Error {
  constructor({status = 0, title, detail = '', ...members}) {
    super(title);
    Object.assign(this, {status, title, detail, members});
  }
}

export async function problemOf(response) {
  const body = await response.json().catch(() => ({}));
  return new Problem({title: response.statusText || `Status ${response.status}`, ...body,
                      status: response.status});
}

/** The answer to a question, of JSON; null for one without a body. Throws Problem. */
export async function ask(method, path, body, key) {
  let response;
  try {
    response = await fetch(path, {
      method,
      headers: {...(body !== undefined && {'Content-Type': 'application/json'}), ...(key && {'Idempotency-Key': key})},
      body: body === undefined ? undefined : JSON.stringify(body),
      cache: 'no-store',
    });
  } catch {
    throw new Problem({
      title: 'The service cannot be reached',
      detail: method === 'GET' ? '' : 'It is not known whether this was done. Look before you repeat it.',
    });
  }
  if (!response.ok) throw await problemOf(response);
  return response.status === 204 ? null : response.json();
}

export const get = path => ask('GET', path);
/** `key`: by which a repeat is known. */
export const post = (path, body, key) => ask('POST', path, body, key);
export const randomKey = () => Array.from(crypto.getRandomValues(new Uint32Array(4)), n => n.toString(36)).join('-');

export const pathOfSale = (sale, rest = '') => `/v1/operate/sales/${encodeURIComponent(sale)}${rest}`;
export const pathOfRoom = (sale, rest = '') => `/v1/operate/rooms/${encodeURIComponent(sale)}${rest}`;
