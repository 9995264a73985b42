// The console's HTTP surface as a person or script uses it: set up, sign in, calls with a session, calls with a key.
import { type Client, createClient } from '../../client/src/index.ts';

export interface Operator {
  email: string;
  password: string;
}

export interface Answer<T = unknown> {
  status: number;
  headers: Headers;
  body: T;
}

/** A call that was not answered with 2xx. */
export class CallError extends Error {
  override readonly name = 'CallError';
  readonly answer: Answer;

  constructor(what: string, answer: Answer) {
    super(`${what}: ${answer.status} ${JSON.stringify(answer.body)}`);
    this.answer = answer;
  }
}

const TIMEOUT_MS = 30_000;

export class ConsoleClient {
  readonly #url: string;
  readonly #origin: string;
  readonly #cookies = new Map<string, string>();
  /** Access key of `api`; set by `createKey` or from outside. */
  accessKey = '';

  /** `url` is where the web port listens; `origin` the public address a browser would send. */
  constructor(url: string, origin: string) {
    this.#url = url;
    this.#origin = origin;
  }

  /** Any request; the body is JSON when it is given and not a string. Never throws for a status. */
  async request<T = unknown>(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Answer<T>> {
    const init: RequestInit = {
      method,
      headers: { ...headers },
      redirect: 'manual',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    };
    if (body !== undefined) {
      init.body = typeof body === 'string' ? body : JSON.stringify(body);
      init.headers = { 'content-type': 'application/json', ...headers };
    }
    const response = await fetch(`${this.#url}${path}`, init);
    const text = await response.text();
    const isJson = response.headers.get('content-type')?.includes('json') === true && text !== '';
    return { status: response.status, headers: response.headers, body: (isJson ? JSON.parse(text) : text) as T };
  }

  /** A call of /api/v1 with the access key. Throws CallError unless answered with 2xx. */
  async api<T = unknown>(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<T> {
    const answer = await this.request<T>(method, `/api/v1${path}`, body, { 'x-api-key': this.accessKey, ...headers });
    return accepted(`${method} ${path}`, answer);
  }

  /** The typed client of /api/v1 with the access key of this moment. */
  get typed(): Client {
    return createClient({ url: this.#url, accessKey: this.accessKey, timeoutMs: TIMEOUT_MS });
  }

  /** Calls a procedure as the signed-in operator; `name` is the procedure's, `sites.list`. */
  async rpc<T = unknown>(name: string, input: unknown = {}): Promise<T> {
    const headers = { cookie: this.cookie, 'x-csrf-token': 'orpc', origin: this.#origin };
    return accepted(name, await this.request<T>('POST', `/rpc/${name.replaceAll('.', '/')}`, input, headers));
  }

  /** A request under /api/auth as a browser sends it: cookies go along, and those answered are kept. */
  async auth<T = unknown>(method: 'GET' | 'POST', path: string, body?: unknown): Promise<Answer<T>> {
    const headers: Record<string, string> = { cookie: this.cookie };
    if (method === 'POST') headers.origin = this.#origin;
    const answer = await this.request<T>(method, `/api/auth${path}`, body, headers);
    for (const line of answer.headers.getSetCookie()) this.#keep(line);
    return answer;
  }

  #keep(line: string): void {
    const [, name, value] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
    if (value) this.#cookies.set(name!, value);
    else if (name) this.#cookies.delete(name);
  }

  /** Signs in and keeps the session cookie. */
  async signIn(operator: Operator): Promise<void> {
    accepted('sign-in', await this.auth('POST', '/sign-in/email', operator));
  }

  /** Creates an access key as the signed-in operator and uses it from now on. */
  async createKey(name: string, scope: 'read' | 'readwrite' = 'readwrite'): Promise<string> {
    const { secret } = await this.rpc<{ secret: string }>('accessKeys.create', { name, scope });
    this.accessKey = secret;
    return secret;
  }

  /** What a new user does first: creates the operator, signs in, creates an access key. */
  async setUp(setupToken: string, operator: Operator & { name: string } = TEST_OPERATOR): Promise<void> {
    const answer = await this.request('POST', '/api/v1/system/setup', { setupToken, ...operator });
    accepted('set-up', answer);
    await this.signIn({ email: operator.email, password: operator.password });
    await this.createKey('first key');
  }

  /** The Cookie header of a browser that made these requests. */
  get cookie(): string {
    return [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; ');
  }
}

/** Operator that `setUp` creates unless told otherwise. */
export const TEST_OPERATOR = {
  name: 'Operator',
  email: 'operator@example.com',
  password: 'correct horse battery staple',
};

function accepted<T>(what: string, answer: Answer<T>): T {
  if (answer.status < 200 || answer.status > 299) throw new CallError(what, answer);
  return answer.body;
}
