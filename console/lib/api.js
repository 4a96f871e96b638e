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

/** What a repeat under the same key may do, a person is told in words of the page. */
const unknown = key => ({
  title: 'It is not known whether this was done',
  detail: key ? 'Press again: however often it is pressed, it is done once.' : 'Look before you repeat it.',
});

/**
 * The answer to a question, of JSON, with its `tag`; null for one without a body. Throws Problem.
 * `key`: by which a repeat is known. `tag`: of what was seen; what has changed since is refused.
 */
export async function ask(method, path, body, {key, tag} = {}) {
  let response;
  try {
    response = await fetch(path, {
      method,
      headers: {...(body !== undefined && {'Content-Type': 'application/json'}), ...(key && {'Idempotency-Key': key}),
                ...(tag && {'If-Match': tag})},
      body: body === undefined ? undefined : JSON.stringify(body),
      cache: 'no-store',
    });
  } catch {
    throw new Problem(method === 'GET' ? {title: 'The service cannot be reached'} : unknown(key));
  }
  if (!response.ok) {
    const problem = await problemOf(response);
    throw Object.assign(problem, problem.members.type?.endsWith('effect-unknown') && unknown(key));
  }
  if (response.status === 204) return null;
  const seen = response.headers.get('ETag');
  return {...await response.json(), ...(seen && {tag: seen})};
}

export const get = path => ask('GET', path);
export const post = (path, body, how) => ask('POST', path, body, how);
export const randomKey = () => Array.from(crypto.getRandomValues(new Uint32Array(4)), n => n.toString(36)).join('-');

export const pathOfSale = (sale, rest = '') => `/v1/operate/sales/${encodeURIComponent(sale)}${rest}`;
export const pathOfRoom = (sale, rest = '') => `/v1/operate/rooms/${encodeURIComponent(sale)}${rest}`;
