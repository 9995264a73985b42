// Answers: JSON in one write, and the error body of the specification.
import type { ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import { ContractError, ERRORS, type ErrorCode, errorCodeOf } from '../../contract/errors.ts';
import { asUnavailable, outcomeUnknown } from '../../runtime/write.ts';

export interface ErrorBody {
  defined: boolean;
  code: ErrorCode;
  status: number;
  message: string;
  data: Record<string, unknown>;
}

/** Writes a JSON text; `headers` are names and values in turn. */
export function sendJson(
  response: ServerResponse,
  status: number,
  body: string,
  base: readonly string[],
  ...headers: string[]
): void {
  sendText(response, status, body, 'application/json; charset=utf-8', base, headers);
}

/** Writes a text that nobody may keep. */
export function sendText(
  response: ServerResponse,
  status: number,
  body: string,
  type: string,
  base: readonly string[],
  headers: readonly string[] = [],
): void {
  response.writeHead(status, [
    ...base,
    'cache-control',
    'no-store',
    'content-type',
    type,
    'content-length',
    String(Buffer.byteLength(body)),
    ...headers,
  ]);
  response.end(body);
}

/** `defined`: whether the surface tells clients that the error is one of the contract. */
export function errorBody(error: ContractError | { type: ErrorCode; data?: unknown }, defined: boolean): ErrorBody {
  const { status, message } = ERRORS[error.type];
  return { defined, code: error.type, status, message, data: (error.data ?? {}) as Record<string, unknown> };
}

// What the broker answers when no process can take a call, or took too long: ours to retry, not the caller's fault.
const AWAY = new Set([
  'SERVICE_NOT_FOUND',
  'SERVICE_NOT_AVAILABLE',
  'REQUEST_TIMEOUT',
  'REQUEST_REJECTED',
  'REQUEST_SKIPPED',
  'QUEUE_FULL',
  'QUEUE_IS_FULL',
  'TRANSPORTER_AWAY',
]);

// The call had begun, or may have.
const UNANSWERED = new Set(['REQUEST_TIMEOUT', 'REQUEST_REJECTED']);

/**
 * The error to tell a client; everything unexpected is logged under an id and masked. `changes`: whether the request would
 * have changed something, so that it matters whether it had begun.
 */
export function presentable(
  thrown: unknown,
  log: Logger,
  requestId: string,
  changes = false,
): { type: ErrorCode; data: unknown } {
  const error = asUnavailable(thrown);
  const code = errorCodeOf(error);
  // The person sees the request's id beside it.
  if (code === 'SERVICE_UNAVAILABLE') log.info({ err: error, requestId }, 'request rejected as unavailable');
  if (code) return { type: code, data: (error as { data?: unknown }).data ?? {} };
  const { type, code: status } = (error ?? {}) as { type?: unknown; code?: unknown };
  if (status === 503 || (typeof type === 'string' && AWAY.has(type))) {
    log.warn({ err: error, requestId }, 'no process responded to the request');
    if (changes && typeof type === 'string' && UNANSWERED.has(type)) return outcomeUnknown(error);
    return new ContractError('SERVICE_UNAVAILABLE', { retryAfterSeconds: 1 });
  }
  log.error({ err: error, requestId }, 'request failed');
  return new ContractError('INTERNAL_SERVER_ERROR', { id: requestId });
}
