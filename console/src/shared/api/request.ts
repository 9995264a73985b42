// One POST or GET to the console and its answer, with a time limit. Knows nothing of sessions.
import { asCallError, CallError } from './call-error.ts';
import { learnServerTime } from './server-clock.ts';

export const TIMEOUT_MS = 30_000;

export interface RequestOptions {
  method?: 'GET' | 'POST';
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal | undefined;
  timeoutMs?: number;
}

export interface Answer {
  body: unknown;
  headers: Headers;
}

let tellContact: (reached: boolean) => void = () => undefined;

/** Told of each request whether the console responded to it. */
export function setContactHook(hook: (reached: boolean) => void): void {
  tellContact = hook;
}

/** Answers a parsed body; throws CallError for everything that is not a success. */
export async function request(path: string, options: RequestOptions = {}): Promise<Answer> {
  const { response, content } = await exchange(path, options, (answered) => answered.text());
  return answer(response, content);
}

/** A file may be long: as long as it comes there is no hurry. */
const FILE_MS = 6 * 3_600_000;

/** Answers a file and its name, '' where the server gave it none; throws as {@link request}. */
export async function requestFile(path: string, options: RequestOptions): Promise<{ content: Blob; name: string }> {
  const { response, content } = await exchange(path, { timeoutMs: FILE_MS, ...options }, (answered) => answered.blob());
  if (!response.ok) answer(response, await content.text());
  const [, name = ''] = /filename="([^"]+)"/.exec(response.headers.get('content-disposition') ?? '') ?? [];
  return { content, name };
}

/** One request and the content of its answer, whatever its status. */
async function exchange<T>(
  path: string,
  { method = 'POST', body, headers = {}, signal, timeoutMs = TIMEOUT_MS }: RequestOptions,
  read: (response: Response) => Promise<T>,
): Promise<{ response: Response; content: T }> {
  const timeout = AbortSignal.timeout(timeoutMs);
  try {
    const response = await fetch(path, {
      method,
      credentials: 'same-origin',
      cache: 'no-store',
      headers: { ...(method === 'POST' ? { 'content-type': 'application/json' } : {}), ...headers },
      ...(method === 'POST' ? { body: JSON.stringify(body ?? {}) } : {}),
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
    });
    learnServerTime(response.headers.get('date'));
    tellContact(!isOfGateway(response));
    return { response, content: await read(response) };
  } catch (error) {
    if (signal?.aborted) throw new CallError('ABORTED', 'The request was cancelled.');
    tellContact(false);
    if (timeout.aborted) throw new CallError('TIMEOUT', 'The console did not answer in time.');
    throw new CallError('NETWORK', error instanceof Error ? error.message : 'The console cannot be reached.');
  }
}

/** A proxy in front says that the console does not respond. */
function isOfGateway({ status, headers }: Response): boolean {
  return status >= 502 && status <= 504 && !headers.get('content-type')?.startsWith('application/json');
}

interface ErrorBody {
  code?: unknown;
  message?: unknown;
  data?: unknown;
}

function answer(response: Response, text: string): Answer {
  const requestId = response.headers.get('x-request-id');
  const body = parse(text);
  if (response.ok && body !== undefined) return { body, headers: response.headers };
  const { code, message, data } = (body ?? {}) as ErrorBody;
  throw new CallError(
    typeof code === 'string' ? code : 'UNEXPECTED_ANSWER',
    typeof message === 'string' ? message : `${response.status}`,
    response.status,
    typeof data === 'object' && data !== null ? (data as Record<string, unknown>) : {},
    requestId,
  );
}

/** What a response that is no success says. */
export async function refusalOf(response: Response): Promise<CallError> {
  try {
    answer(response, await response.text());
  } catch (error) {
    return asCallError(error);
  }
  return new CallError('UNEXPECTED_ANSWER', `${response.status}`, response.status);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
