// Whom certificates are asked of, and how they are reached.
import { createPrivateKey } from 'node:crypto';
import { DIRECTORY_FAULTS } from '../../../contract/resources/acme-directory.ts';
import { AcmeAccount, accountSecretPlace } from '../../../models/certificates/acme-account.ts';
import { directorySecretPlace, readAcmeDirectory } from '../../../models/certificates/acme-directory.ts';
import type { CertificateRequest } from '../../../models/certificates/acme-order.ts';
import { Recent } from '../../../models/db/recent.ts';
import { PRIVATE_RANGES } from '../../../runtime/outbound.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { OrderFailed } from './failure.ts';
import { AcmeClient, type Directory, type DirectoryAt, readDirectory } from './protocol/client.ts';
import type { ExternalAccount } from './protocol/jws.ts';

export type Ca = CertificateRequest['ca'];

const DIRECTORIES: Readonly<Record<Exclude<Ca, 'custom'>, string>> = {
  letsencrypt: 'https://acme-v02.api.letsencrypt.org/directory',
  letsencryptStaging: 'https://acme-staging-v02.api.letsencrypt.org/directory',
  zerossl: 'https://acme.zerossl.com/v2/DV90',
};

/** What CAA records call those whose directory does not say. */
const CAA_NAMES: Readonly<Record<Exclude<Ca, 'custom'>, readonly string[]>> = {
  letsencrypt: ['letsencrypt.org'],
  letsencryptStaging: ['letsencrypt.org'],
  zerossl: ['sectigo.com', 'trust-provider.com', 'usertrust.com'],
};

/** Where the authority is; null: a custom one that nobody has configured. */
export async function directoryAt({ pools }: Pick<Runtime, 'pools'>, ca: Ca): Promise<DirectoryAt | null> {
  if (ca !== 'custom') return { url: DIRECTORIES[ca], ca: null, allow: [] };
  const own = await readAcmeDirectory(pools.api);
  if (!own?.url) return null;
  return customAt(own.url, own.caPem);
}

/** An authority of one's own may be on a private network. */
export function customAt(url: string, caPem: string): DirectoryAt {
  return { url, ca: caPem === '' ? null : [caPem], allow: PRIVATE_RANGES };
}

/** The external account of the custom authority; null without one. */
export async function ownExternalAccount({ pools, sealer }: Runtime): Promise<ExternalAccount | null> {
  const own = await readAcmeDirectory(pools.api);
  if (!own?.eabHmacKey) return null;
  return { kid: own.eabKid, hmacKey: sealer.open(own.eabHmacKey, directorySecretPlace()).toString() };
}

const KNOWN_MS = 10 * 60_000;
const directories = new Recent<Directory>(KNOWN_MS);

/** The directory, as read within the last ten minutes. */
export function recentDirectory(at: DirectoryAt): Promise<Directory> {
  return directories.get(() => readDirectory(at), `${at.url}\n${at.ca?.join('\n') ?? ''}`);
}

/** How far one came with a directory that cannot be used. What its server said is nobody's business. */
export function directoryFault(error: unknown): (typeof DIRECTORY_FAULTS)[number] {
  const { reason } = error as { reason?: string };
  return DIRECTORY_FAULTS.find((one) => one === reason) ?? 'answer';
}

/** By which names CAA records allow the authority; empty: it does not say. */
export async function caaNames(runtime: Runtime, ca: Ca): Promise<readonly string[]> {
  if (ca !== 'custom') return CAA_NAMES[ca];
  const at = await directoryAt(runtime, ca);
  return at ? (await recentDirectory(at)).caaIdentities : [];
}

/** The account of an order and its authority, ready to talk. Throws OrderFailed. */
export async function openAccount(
  runtime: Runtime,
  ca: Ca,
  accountId: string | null,
  signal: AbortSignal,
): Promise<{ client: AcmeClient; account: AcmeAccount; at: DirectoryAt }> {
  const at = await directoryAt(runtime, ca);
  const account = accountId === null ? undefined : await AcmeAccount.byId(runtime.pools.api, accountId);
  if (!account) throw new OrderFailed('acme_account_does_not_exist');
  // The directory was changed since the order began: an account of another authority opens nothing here.
  if (at === null || account.directoryUrl !== at.url) throw new OrderFailed('acme_directory_not_configured');
  const key = createPrivateKey({
    key: runtime.sealer.open(account.privateKey, accountSecretPlace('private_key', account.id)),
    format: 'der',
    type: 'pkcs8',
  });
  const client = new AcmeClient(at, await recentDirectory(at), key, account.url, signal);
  return { client, account, at };
}

/** The external account of an account; null without one. */
export function externalAccountOf({ sealer }: Runtime, account: AcmeAccount): ExternalAccount | null {
  if (account.eabHmacKey === null) return null;
  const hmacKey = sealer.open(account.eabHmacKey, accountSecretPlace('eab_hmac_key', account.id)).toString();
  return { kid: account.eabKid, hmacKey };
}
