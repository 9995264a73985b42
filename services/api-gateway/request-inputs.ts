// What a request brings beside its path: body, idempotency key, origin.
import type { IncomingMessage } from 'node:http';
import { ContractError, fail } from '../../contract/errors.ts';
import { NOBODY } from './credentials.ts';
import type { Exchange } from './exchange.ts';
import { parseIdempotencyKey } from './idempotency-key.ts';
import { readBody } from './json-body.ts';
import type { ApiRoute } from './route-table.ts';

/** Largest body of a request; a procedure that takes more says so in the contract. */
const BODY_LIMIT = 1024 * 1024;
/** The same of whoever has shown no key or session yet, and of sign-in: more than the largest answer of a passkey. */
const STRANGER_BODY_LIMIT = 128 * 1024;

const JSON_TYPE = /^application\/json(?:\s*;\s*charset=(?:utf-8|"utf-8"))?\s*$/i;

/** Reads the body of a request that takes one; UNSUPPORTED_MEDIA_TYPE unless it is JSON, PAYLOAD_TOO_LARGE. */
export async function requestBody(exchange: Exchange): Promise<Buffer> {
  if (!isJson(exchange.request)) fail('UNSUPPORTED_MEDIA_TYPE');
  const body = await readBody(exchange.request, exchange.response, bodyLimit(exchange));
  return isTyped(exchange.request, body) ? body : fail('UNSUPPORTED_MEDIA_TYPE');
}

/** A body that was read, or a stand-in for one that was not, with the refusal of either. */
export interface Received {
  body: Buffer;
  refusal: ContractError | null;
}

/** As {@link requestBody} for a request with an idempotency key, whose refusals are kept with the rest of the request. */
export async function receivedBody(exchange: Exchange): Promise<Received> {
  const { request, response } = exchange;
  try {
    const body = await readBody(request, response, bodyLimit(exchange));
    const json = isJson(request) && isTyped(request, body);
    return { body, refusal: json ? null : new ContractError('UNSUPPORTED_MEDIA_TYPE') };
  } catch (error) {
    if (!(error instanceof ContractError)) throw error;
    // No body that is taken can be confused with it: this is no JSON.
    return { body: Buffer.from(`too large: ${request.headers['content-length'] ?? ''}`), refusal: error };
  }
}

function bodyLimit({ procedure, caller }: Exchange): number {
  return caller === NOBODY ? STRANGER_BODY_LIMIT : (procedure?.bodyLimit ?? BODY_LIMIT);
}

function isJson({ headers }: IncomingMessage): boolean {
  const { 'content-type': type, 'content-encoding': encoding } = headers;
  return (type === undefined || JSON_TYPE.test(type)) && (encoding === undefined || encoding === 'identity');
}

/** Without a type there may be no body. */
function isTyped({ headers }: IncomingMessage, body: Buffer): boolean {
  return body.length === 0 || headers['content-type'] !== undefined;
}

/** Browsers say where a request comes from; what comes from another site is refused. Scripts say nothing. */
export function refuseForeignOrigin(request: IncomingMessage, publicUrl: string): void {
  const { origin } = request.headers;
  const site = request.headers['sec-fetch-site'];
  const foreign =
    origin !== undefined ? origin !== publicUrl : site !== undefined && site !== 'same-origin' && site !== 'none';
  if (foreign) fail('CROSS_SITE_REQUEST');
}

/** Whether inputs come from a body, else from the query. */
export function takesBody({ procedure }: ApiRoute): boolean {
  return procedure.method !== 'GET' && procedure.method !== 'DELETE';
}

/** Whether answers of the route are kept for a request with a key. */
export function takesIdempotencyKey(route: ApiRoute): boolean {
  return takesBody(route) && route.procedure.idempotency === 'accepted';
}

/** The key of a request that takes one; throws for a malformed key and where none is taken. */
export function idempotencyHeader({ request }: Exchange, route: ApiRoute): string | null {
  const header = request.headers['idempotency-key'];
  if (header === undefined || !takesBody(route)) return null;
  if (!takesIdempotencyKey(route)) fail('IDEMPOTENCY_KEY_UNSUPPORTED');
  return parseIdempotencyKey(String(header));
}

/** A body may not name what the path already says. */
export function bodyWithoutPath(body: Record<string, unknown>, pathInputs: readonly string[]): Record<string, unknown> {
  const named = pathInputs.find((name) => Object.hasOwn(body, name));
  if (named === undefined) return body;
  return fail('BAD_REQUEST', {
    issues: [{ path: `/${named}`, keyword: 'additionalProperties', params: { additionalProperty: named } }],
  });
}

/** Refuses every query, by the name of its first parameter. */
export function refuseQuery(query: string): void {
  if (query === '') return;
  const name = query.split(/[=&]/, 1)[0]!.slice(0, 100);
  fail('BAD_REQUEST', {
    issues: [{ path: `/${name}`, keyword: 'additionalProperties', params: { additionalProperty: name } }],
  });
}
