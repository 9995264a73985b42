// Bodies: read with a cap, raw bytes kept, then judged before anything interprets them.
import { isUtf8 } from 'node:buffer';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { badField, ContractError, fail } from '../../contract/errors.ts';

/** Deepest nesting of objects and arrays. */
export const MAX_DEPTH = 32;

/** The client went away before its request was complete; there is nobody to answer. */
export class ClientGone extends Error {}

/** Reads the whole body; PAYLOAD_TOO_LARGE above the limit, before it is read where its length is announced. */
export async function readBody(request: IncomingMessage, response: ServerResponse, limit: number): Promise<Buffer> {
  const announced = request.headers['content-length'];
  if (announced !== undefined && Number(announced) > limit) fail('PAYLOAD_TOO_LARGE', { limit });
  if (announced === '0' || (announced === undefined && request.headers['transfer-encoding'] === undefined)) {
    return Buffer.alloc(0);
  }
  // A small body is here with its head.
  if (request.complete) return within((request.read() as Buffer | null) ?? Buffer.alloc(0), limit);
  if (request.headers.expect !== undefined) response.writeContinue();
  const chunks: Buffer[] = [];
  let size = 0;
  return new Promise((resolve, reject) => {
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size <= limit) {
        chunks.push(chunk);
        return;
      }
      // The rest is read and dropped, so that the client sees the answer; the server's request timeout bounds it.
      chunks.length = 0;
      reject(new ContractError('PAYLOAD_TOO_LARGE', { limit }));
    });
    request.on('end', () => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)));
    // A request closes after its end, too.
    request.on('close', () => request.readableEnded || reject(new ClientGone()));
    request.on('error', () => reject(new ClientGone()));
  });
}

function within(body: Buffer, limit: number): Buffer {
  return body.length > limit ? fail('PAYLOAD_TOO_LARGE', { limit }) : body;
}

/** The object that a JSON body holds; an empty body is an empty object. Throws BAD_REQUEST. */
export function parseJsonObject(body: Buffer): Record<string, unknown> {
  if (body.length === 0) return {};
  if (!isUtf8(body)) badField('', 'utf8');
  if (nestsDeeper(body, MAX_DEPTH)) badField('', 'depth', { limit: MAX_DEPTH });
  const text = body.toString('utf8');
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    badField('', 'json');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) badField('', 'type', { type: 'object' });
  // Only a body that spells the name, or escapes characters, can hold what is refused here.
  if (text.includes('__proto__') || text.includes('\\u')) refuseUnsafe(value, '');
  return value as Record<string, unknown>;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

function nestsDeeper(body: Buffer, limit: number): boolean {
  let depth = 0;
  let quoted = false;
  for (let index = 0; index < body.length; index++) {
    const byte = body[index];
    if (quoted) {
      if (byte === BACKSLASH) index++;
      else if (byte === QUOTE) quoted = false;
    } else if (byte === QUOTE) {
      quoted = true;
    } else if (byte === 0x7b || byte === 0x5b) {
      depth++;
      if (depth > limit) return true;
    } else if (byte === 0x7d || byte === 0x5d) {
      depth--;
    }
  }
  return false;
}

/** Refuses the name __proto__, and text that the database cannot hold: NUL and half surrogate pairs. */
function refuseUnsafe(value: unknown, path: string): void {
  if (typeof value === 'string' && !isStorable(value)) badField(path, 'unicode');
  if (typeof value !== 'object' || value === null) return;
  for (const [name, member] of Object.entries(value)) {
    if (name === '__proto__') badField(`${path}/__proto__`, 'forbiddenName');
    if (!isStorable(name)) badField(path, 'unicode');
    refuseUnsafe(member, `${path}/${name.slice(0, 100).replaceAll('~', '~0').replaceAll('/', '~1')}`);
  }
}

/** Whether PostgreSQL can hold the text. */
export function isStorable(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed();
}
