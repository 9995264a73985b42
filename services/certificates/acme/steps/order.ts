// The account, the order and what the authority wants shown: from here on the authority knows of it.

import { setAccountUrl } from '../../../../models/certificates/acme-account.ts';
import type { Authorization } from '../../../../models/certificates/acme-order.ts';
import { externalAccountOf } from '../authority.ts';
import { OrderFailed } from '../failure.ts';
import { parallel } from '../parallel.ts';
import { DirectoryInvalid } from '../protocol/client.ts';
import { AcmeProblem } from '../protocol/problem.ts';
import { renewalId } from '../renewal-id.ts';
import type { Next, StepContext } from '../step.ts';

const READS = 4;
const CHALLENGE_TYPES = { http01: 'http-01', dns01: 'dns-01' } as const;
/**
 * The former certificate was replaced by an order that came to nothing, another account has it, or the authority has lost
 * it: then the order is one like any other.
 */
const NOT_REPLACED: ReadonlySet<string> = new Set(['alreadyReplaced', 'conflict', 'malformed', 'unauthorized']);
const TOKEN = /^[A-Za-z0-9_-]{1,256}$/;

/** The authority answers the same account for the same key, however often it is asked. */
export async function account({ runtime, open }: StepContext): Promise<Next> {
  const { client, account } = await open();
  if (account.url !== null) return { to: 'order' };
  const external = externalAccountOf(runtime, account);
  if (external === null && client.directory.externalAccountRequired) {
    throw new OrderFailed('acme_external_account_required');
  }
  await setAccountUrl(runtime.pools.api, account.id, await client.account(account.email, external));
  return { to: 'order' };
}

/**
 * An answer that is lost leaves an order that nobody goes on with; the authority forgets it. A certificate comes of one
 * order alone: the one that is stored.
 */
export async function order({ order, certificate, open }: StepContext): Promise<Next> {
  const { client } = await open();
  const identifiers = order.names.map((value) => ({ type: 'dns', value }));
  const replaces = client.directory.renewalInfo === null ? null : renewalId(certificate.leaf);
  const make = (replacing: string | null) =>
    client.post(client.directory.newOrder, { identifiers, ...(replacing === null ? {} : { replaces: replacing }) });
  const made = await make(replaces).catch((error: unknown) => {
    if (!(error instanceof AcmeProblem && NOT_REPLACED.has(error.type)) || replaces === null) throw error;
    return make(null);
  });
  const { authorizations, finalize } = made.body as { authorizations?: unknown; finalize?: unknown };
  if (made.location === null || !Array.isArray(authorizations) || typeof finalize !== 'string') {
    throw new DirectoryInvalid();
  }
  const urls = authorizations.filter((url): url is string => typeof url === 'string').slice(0, order.names.length);
  return {
    to: 'challenges',
    patch: {
      orderUrl: made.location,
      finalizeUrl: finalize,
      replaces,
      authorizations: urls.map((url) => ({
        url,
        name: '',
        wildcard: false,
        state: 'waiting',
        challengeUrl: '',
        token: '',
        error: null,
      })),
    },
  };
}

export async function challenges({ order, certificate, open }: StepContext): Promise<Next> {
  const { client } = await open();
  const type = CHALLENGE_TYPES[certificate.request.challenge];
  const read: Authorization[] = [];
  await parallel(order.authorizations, READS, async ({ url }) => {
    read.push(presentAuthorization(url, (await client.post(url, null)).body, type));
  });
  // One that was refused before, or has ended: an order of today asks for another.
  if (read.some(({ state }) => state === 'invalid')) throw new OrderFailed('acme_unauthorized');
  const authorizations = read.sort((a, b) => (a.name < b.name ? -1 : 1));
  const done = authorizations.every(({ state }) => state === 'valid');
  return { to: done ? 'finalize' : 'present', patch: { authorizations } };
}

interface AuthorizationBody {
  identifier?: { value?: unknown };
  status?: unknown;
  wildcard?: unknown;
  challenges?: { type?: unknown; url?: unknown; token?: unknown }[];
}

function presentAuthorization(url: string, body: AuthorizationBody, type: string): Authorization {
  const { identifier, status, wildcard, challenges: offered } = body;
  const challenge = Array.isArray(offered) ? offered.find((one) => one?.type === type) : undefined;
  const name = typeof identifier?.value === 'string' ? identifier.value.toLowerCase() : '';
  const valid = status === 'valid';
  const { url: challengeUrl, token } = challenge ?? {};
  const usable = typeof challengeUrl === 'string' && typeof token === 'string' && TOKEN.test(token);
  if (name === '' || (!valid && status === 'pending' && !usable)) {
    throw new OrderFailed('acme_unsupported_identifier', { names: [name] });
  }
  return {
    url,
    name,
    wildcard: wildcard === true,
    state: valid ? 'valid' : status === 'pending' ? 'waiting' : 'invalid',
    challengeUrl: usable ? challengeUrl : '',
    token: usable ? token : '',
    error: null,
  };
}
