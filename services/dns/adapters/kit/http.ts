// Requests to providers: address policy, time and size are bounded, and failures are told by whether the provider may have
// acted. No redirects, no proxies.
import { type OutboundAnswer, OutboundFailed, sendOutbound } from '../../../../runtime/outbound.ts';
import { AdapterError } from '../adapter.ts';

const REQUEST_MS = 15_000;
const MAX_BYTES = 16 * 1024 * 1024;
const MAX_RETRY_AFTER_SECONDS = 86_400;

export interface ProviderRequest {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  url: URL;
  headers?: Readonly<Record<string, string>>;
  body?: string;
  /** Whether the provider changes anything because of it. */
  writes: boolean;
  allow: readonly string[];
  timeoutMs?: number | undefined;
  signal: AbortSignal;
  /** A status of 500 and above that says that the provider has no such call. */
  notHere?: number;
  /** What the provider says about a failure, from the body of its response. */
  detail?: (body: string) => string;
}

export interface ProviderResponse {
  status: number;
  body: string;
}

/** Returns responses below 500 but 401, 403 and 429. Throws {@link AdapterError}. */
export async function callProvider(request: ProviderRequest): Promise<ProviderResponse> {
  const { method, url, headers = {}, body, writes, allow, timeoutMs = REQUEST_MS, signal } = request;
  let response: OutboundAnswer;
  try {
    const bounds = { allow, timeoutMs, maxBytes: MAX_BYTES, signal };
    response = await sendOutbound({ url, method, headers, ...(body === undefined ? {} : { body }), ...bounds });
  } catch (error) {
    if (!(error instanceof OutboundFailed)) throw error;
    throw failureOf(error, writes);
  }
  const { status } = response;
  const text = response.body.toString();
  const detail = request.detail?.(text) ?? '';
  if (status === 429) {
    throw new AdapterError('rate_limited', detail, { retryAfter: retryAfter(response.headers['retry-after']) });
  }
  if (status === 401 || status === 403) throw new AdapterError('denied', detail);
  if (status >= 500 && status !== request.notHere) {
    const after = { retryAfter: retryAfter(response.headers['retry-after']) };
    if (status === 503 && after.retryAfter !== null) throw new AdapterError('rate_limited', detail, after);
    // Gateways say so, too, when the provider behind them has done what it was asked.
    throw new AdapterError(writes ? 'timeout' : 'unavailable', detail || `HTTP ${status}`);
  }
  return { status, body: text };
}

function failureOf(error: OutboundFailed, writes: boolean): AdapterError {
  if (error.reason === 'refused') return new AdapterError('address_refused', '', { cause: error });
  if (error.sent && writes) return new AdapterError('timeout', error.reason, { unreachable: true, cause: error });
  const kind = error.reason === 'timeout' && error.sent ? 'timeout' : 'unavailable';
  return new AdapterError(kind, error.reason, { unreachable: true, cause: error });
}

/** Seconds from now; null for none. */
export function retryAfter(header: string | undefined, now = Date.now()): number | null {
  if (header === undefined) return null;
  const seconds = /^[0-9]+$/.test(header) ? Number(header) : (Date.parse(header) - now) / 1000;
  return Number.isFinite(seconds) ? Math.min(Math.max(Math.ceil(seconds), 0), MAX_RETRY_AFTER_SECONDS) : null;
}

/** Throws {@link AdapterError} for a text that is no JSON object; after a write nobody knows what happened. */
export function jsonOf(body: string, writes: boolean): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(body);
    if (typeof value === 'object' && value !== null) return value as Record<string, unknown>;
  } catch {
    // Told below.
  }
  throw new AdapterError(writes ? 'timeout' : 'unavailable', 'the response is no JSON object');
}
