// Calls of /api/v1 over fetch. Which operations there are, and how each is asked for, is generated.
import type { Answer, OperationName, WriteOptions } from './call.ts';
import { ApiError, ConnectionError } from './errors.ts';
import { type Api, OPERATIONS } from './generated/operations.ts';

export interface ClientOptions {
  /** Address of the console, https://console.example. */
  url: string;
  /** Access key (ewk_…) or key of a service account (ews_…); without one only public operations answer. */
  accessKey?: string | undefined;
  /** Longest time of one attempt; default 30 s. */
  timeoutMs?: number | undefined;
  /** Whether and how a call waits when too many were made in a row; default: it does not. */
  retryRateLimited?: RetryOptions | undefined;
  /** Instead of the global fetch. */
  fetch?: typeof fetch | undefined;
}

export interface RetryOptions {
  /** Attempts after the first one; default 2. */
  attempts?: number | undefined;
  /** A longer wait is not begun: the refusal is thrown; default 120. */
  maxWaitSeconds?: number | undefined;
}

export type Client = Api;

const TIMEOUT_MS = 30_000;

/** A client of one console; it keeps no state between calls. Throws TypeError for an address that is none. */
export function createClient(options: ClientOptions): Client {
  const base = new URL(options.url);
  if (!/^https?:$/.test(base.protocol)) throw new TypeError(`${options.url} is no address of a console`);
  const api = `${base.href.replace(/\/+$/, '')}/api/v1`;
  const client: Group = {};
  for (const name of Object.keys(OPERATIONS) as OperationName[]) {
    const answer = (input: object = {}, given: WriteOptions = {}) => call(name, api, options, input, given);
    const body = async (input?: object, given?: WriteOptions) => (await answer(input, given)).body;
    place(client, name.split('.'), Object.assign(body, { answer }));
  }
  return client as unknown as Client;
}

interface Group {
  [name: string]: Group | object;
}

function place(group: Group, [first, ...rest]: string[], member: object): void {
  if (rest.length > 0) group[first!] ??= {};
  if (rest.length === 0) group[first!] = member;
  else place(group[first!] as Group, rest, member);
}

async function call(
  name: OperationName,
  api: string,
  options: ClientOptions,
  input: object,
  given: WriteOptions,
): Promise<Answer<unknown>> {
  const { attempts = 2, maxWaitSeconds = 120 } = options.retryRateLimited ?? {};
  for (let attempt = 0; ; attempt++) {
    try {
      return await request(name, api, options, input as Record<string, unknown>, given);
    } catch (error) {
      // Only this refusal is certain to have changed nothing and to pass.
      const again = options.retryRateLimited && error instanceof ApiError && error.code === 'API_KEY_RATE_LIMITED';
      if (!again || attempt >= attempts || (error.retryAfterSeconds ?? 0) > maxWaitSeconds) throw error;
      await wait((error.retryAfterSeconds ?? 1) * 1000, given.signal);
    }
  }
}

async function request(
  name: OperationName,
  api: string,
  options: ClientOptions,
  input: Record<string, unknown>,
  given: WriteOptions,
): Promise<Answer<unknown>> {
  const { method, query } = OPERATIONS[name];
  const { path, rest } = target(name, input);
  const headers: Record<string, string> = { accept: 'application/json' };
  if (options.accessKey) headers['x-api-key'] = options.accessKey;
  if (given.idempotencyKey !== undefined) headers['idempotency-key'] = given.idempotencyKey;
  if (!query) headers['content-type'] = 'application/json';
  const timeout = AbortSignal.timeout(given.timeoutMs ?? options.timeoutMs ?? TIMEOUT_MS);
  let response: Response;
  let text: string;
  try {
    response = await (options.fetch ?? fetch)(`${api}${path}${query ? searchOf(rest) : ''}`, {
      method,
      headers,
      body: query ? null : JSON.stringify(rest),
      // Cookies count for nothing there, and a redirection must not take the key elsewhere.
      credentials: 'omit',
      redirect: 'error',
      signal: given.signal ? AbortSignal.any([given.signal, timeout]) : timeout,
    });
    text = await response.text();
  } catch (error) {
    if (given.signal?.aborted) throw given.signal.reason;
    throw new ConnectionError(name, timeout.aborted ? 'timeout' : 'unreachable', error);
  }
  const isText = response.ok && OPERATIONS[name].text;
  const body = isText ? text : parsed(name, response, text);
  if (!response.ok) throw refusalOf(name, response, body);
  return {
    status: response.status,
    body,
    change: response.headers.get('x-svc-change'),
    replayed: response.headers.get('idempotent-replayed') === 'true',
  };
}

/** The path with its inputs filled in, and the inputs that are left. */
function target(name: OperationName, input: Record<string, unknown>): { path: string; rest: Record<string, unknown> } {
  const rest = { ...input };
  const path = OPERATIONS[name].path.replaceAll(/\{([^}]+)\}/g, (_, key: string) => {
    const text = String(rest[key] ?? '');
    delete rest[key];
    // Addresses are shortened where a part is empty or dots: another operation would be asked.
    if (text === '' || text === '.' || text === '..') throw new TypeError(`${name}: ${key} is missing or no id`);
    return encodeURIComponent(text);
  });
  return { path, rest };
}

function searchOf(input: Record<string, unknown>): string {
  const search = new URLSearchParams();
  for (const [key, value] of Object.entries(input)) if (value !== undefined) search.set(key, String(value));
  return search.size === 0 ? '' : `?${search}`;
}

function parsed(name: string, response: Response, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new ConnectionError(name, 'unexpected_answer', error, response.status);
  }
}

function refusalOf(name: string, response: Response, body: unknown): Error {
  const { code, message, data, error } = (body ?? {}) as Record<string, unknown>;
  const { status } = response;
  // An id with characters that no id has is a path that does not exist.
  if (error === 'not_found')
    return new ApiError(name, { status, code: 'NOT_FOUND', message: 'not found', data: {} }, null);
  if (typeof code !== 'string') return new ConnectionError(name, 'unexpected_answer', body, status);
  const seconds = Number(response.headers.get('retry-after') ?? Number.NaN);
  const refusal = { status, code, message: String(message), data: (data ?? {}) as Record<string, unknown> };
  return new ApiError(name, refusal, Number.isFinite(seconds) ? seconds : null);
}

function wait(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((done, failed) => {
    signal?.throwIfAborted();
    const ended = () => {
      clearTimeout(timer);
      failed(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', ended);
      done();
    }, ms);
    signal?.addEventListener('abort', ended, { once: true });
  });
}
