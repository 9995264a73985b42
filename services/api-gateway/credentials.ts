// Who calls: an access key on /api/v1, a session on /rpc. Judged from headers alone, before any body is read.
import { createHash } from 'node:crypto';
import { fail } from '../../contract/errors.ts';
import type { AnyProcedure } from '../../contract/procedure.ts';
import type { Actor } from '../../mixins/call.ts';
import type { KeyCache, KnownKey } from './key-cache.ts';

/** Someone who may call, and what with. */
export interface Caller {
  actor: Actor;
  /** Set for access keys. */
  key: KnownKey | null;
}

export const NOBODY: Caller = { actor: { type: 'system', id: null, name: 'anonymous' }, key: null };

const ACCESS_KEY = /^ewk_[A-Za-z0-9_-]{43}$/;

/** SHA-256 of a key, hexadecimal: keys are stored, looked up and remembered by it alone. */
export function keyHash(key: string): string {
  return createHash('sha256').update(key).digest('hex');
}

/** The caller with an access key; UNAUTHORIZED for anything that is none. */
export async function accessKeyCaller(header: string | string[] | undefined, keys: KeyCache): Promise<Caller> {
  if (typeof header !== 'string' || !ACCESS_KEY.test(header)) fail('UNAUTHORIZED');
  // Looked up by hash: how long that takes tells nothing about the key.
  const key = await keys.get(keyHash(header));
  if (!key) fail('UNAUTHORIZED');
  return { actor: { type: 'api_key', id: key.id, name: key.name }, key };
}

/** Whether an access key may call; throws the refusal. */
export function checkKeyAccess(procedure: AnyProcedure, key: KnownKey): void {
  if (procedure.access === 'session') fail('ACCESS_KEY_SESSION_REQUIRED');
  if (key.scope === 'read' && !procedure.readOnly) fail('ACCESS_KEY_READ_ONLY');
}
