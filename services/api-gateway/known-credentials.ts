// Everything the gateway remembers of credentials, and how it keeps up with them.
import { Counter } from 'prom-client';
import type { ErrorCode } from '../../contract/errors.ts';
import type { KnownSession } from '../../runtime/auth-action.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { CredentialCache, type CredentialCacheOptions } from './credential-cache.ts';
import { CredentialNotices } from './credential-notices.ts';
import type { KeyCaches, KnownKey } from './credentials.ts';
import { FailedLookups } from './failed-lookups.ts';

/** Asks an action that knows credentials of a kind. */
export type Ask = <T>(action: string, input: { hash: string }) => Promise<T | null>;

export interface KnownCredentials {
  keys: KeyCaches;
  sessions: CredentialCache<KnownSession>;
  notices: CredentialNotices;
  /** What counts lookups of sessions that are not remembered, too. */
  failed: FailedLookups;
}

/** `onEnded`: something has ended, or may have. */
export function knownCredentials(runtime: Runtime, ask: Ask, onEnded: () => void = () => undefined): KnownCredentials {
  const questions = new Counter({
    name: 'svc_gateway_credential_questions_total',
    help: 'Credentials looked up in the database, because the process did not remember them',
    labelNames: ['kind'],
    registers: [runtime.metrics],
  });
  const failed = new FailedLookups();
  const caches: Pick<CredentialCache<unknown>, 'forget' | 'clear'>[] = [];
  const notices = new CredentialNotices(runtime, {
    onEnded: (hash) => {
      for (const cache of caches) cache.forget(hash);
      onEnded();
    },
    onGap: () => {
      for (const cache of caches) cache.clear();
      onEnded();
    },
  });
  const cacheOf = <T>(
    kind: string,
    action: string,
    refusal: ErrorCode,
    options: Pick<CredentialCacheOptions<T>, 'lifeMs'> = {},
  ) => {
    const question = (hash: string) => {
      questions.inc({ kind });
      return ask<T>(action, { hash });
    };
    const find = (hash: string, address: string | null) =>
      address === null ? question(hash) : failed.ask(address, refusal, () => question(hash));
    const cache = new CredentialCache<T>({ ...options, find, hears: (now) => notices.hears(now) });
    caches.push(cache);
    return cache;
  };
  return {
    keys: {
      access_key: cacheOf<KnownKey>('access_key', 'accessKeys.find', 'API_KEY_RATE_LIMITED'),
      service_account: cacheOf<KnownKey>('service_account', 'serviceAccounts.find', 'API_KEY_RATE_LIMITED'),
    },
    sessions: cacheOf<KnownSession>('session', 'auth.session', 'SIGN_IN_RATE_LIMITED', {
      // One that was prolonged is asked about again, or every answer would send its cookie.
      lifeMs: ({ refreshed, remainingMs }) => (refreshed ? 0 : remainingMs),
    }),
    notices,
    failed,
  };
}
