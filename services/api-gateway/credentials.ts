// Who calls: an access key or a service account's key on /api/v1, a session on /rpc. Judged from headers alone, before any
// body is read.
import { hash } from 'node:crypto';
import { ContractError, fail } from '../../contract/errors.ts';
import type { AnyProcedure, Scope } from '../../contract/procedure.ts';
import type { Actor } from '../../runtime/call.ts';
import type { CredentialCache } from './credential-cache.ts';

export interface KnownAccessKey {
  kind: 'access_key';
  keyId: string;
  /** The key is who acts. */
  id: string;
  name: string;
  scope: 'read' | 'readwrite';
}

export interface KnownServiceAccountKey {
  kind: 'service_account';
  keyId: string;
  /** The account is who acts. */
  id: string;
  name: string;
  scopes: readonly Scope[];
}

export type KnownKey = KnownAccessKey | KnownServiceAccountKey;
export type KeyKind = KnownKey['kind'];
export type KeyCaches = Readonly<Record<KeyKind, CredentialCache<KnownKey>>>;

/** Someone who may call, and what with. */
export interface Caller {
  actor: Actor;
  /** Set for keys. */
  key: KnownKey | null;
}

export const NOBODY: Caller = { actor: { type: 'anonymous', id: null, name: '' }, key: null };

const KEY = /^ew[ks]_[A-Za-z0-9_-]{43}$/;

/** SHA-256 of a key or session, hexadecimal: they are stored, looked up and remembered by it alone. */
export function secretHash(secret: string): string {
  return hash('sha256', secret, 'hex');
}

/**
 * The caller at an address with a key; UNAUTHORIZED for anything that is none, and for the keys of a disabled service
 * account; API_KEY_RATE_LIMITED when too many from the address were none.
 */
export async function keyCaller(
  header: string | string[] | undefined,
  address: string,
  keys: KeyCaches,
): Promise<Caller> {
  if (typeof header !== 'string' || !KEY.test(header)) fail('UNAUTHORIZED');
  // Looked up by hash: how long that takes tells nothing about the key.
  const key = await keys[header.startsWith('ewk') ? 'access_key' : 'service_account'].get(secretHash(header), address);
  if (!key) fail('UNAUTHORIZED');
  const type = key.kind === 'access_key' ? 'api_key' : 'service_account';
  return { actor: { type, id: key.id, name: key.name }, key };
}

/** Why a key may not call; null when it may. */
export function accessRefusal({ access, readOnly }: AnyProcedure, key: KnownKey): ContractError | null {
  if (key.kind === 'service_account') {
    if (typeof access !== 'object') return new ContractError('SERVICE_ACCOUNT_FORBIDDEN');
    const { scope } = access;
    return scope === null || key.scopes.includes(scope) ? null : new ContractError('SCOPE_REQUIRED', { scope });
  }
  if (access === 'session') return new ContractError('ACCESS_KEY_SESSION_REQUIRED');
  return key.scope === 'read' && !readOnly ? new ContractError('ACCESS_KEY_READ_ONLY') : null;
}

/** Namespace of those who show no key. */
export const NOBODYS_NAMESPACE = 'nobody';

/** Namespace of idempotency keys: all access keys share one, each service account has its own. */
export function idempotencyNamespace(key: KnownKey | null): string {
  if (key === null) return NOBODYS_NAMESPACE;
  return key.kind === 'access_key' ? 'access-keys' : `service-account:${key.id}`;
}
