// Before the authority is asked: which names, who answers for them, and whether visitors get there. Makes the key.
import { createPrivateKey, webcrypto } from 'node:crypto';
import 'reflect-metadata';
import { Pkcs10CertificateRequestGenerator, SubjectAlternativeNameExtension } from '@peculiar/x509';
import { AcmeAccount } from '../../../../models/certificates/acme-account.ts';
import {
  changeAccount,
  changeRequestedNames,
  domainsBehind,
} from '../../../../models/certificates/acme-certificate.ts';
import { type CertificateRequest, holdLease, orderKeyPlace } from '../../../../models/certificates/acme-order.ts';
import { nodesBehind } from '../../../../models/certificates/acme-token.ts';
import { edgeAddresses } from '../../../../models/nodes/edge-addresses.ts';
import { systemCall } from '../../../../runtime/call.ts';
import { write } from '../../../../runtime/write.ts';
import { ensureAccount } from '../account.ts';
import { directoryAt, ownExternalAccount } from '../authority.ts';
import { credentialOf, recordPlaces } from '../dns/place-records.ts';
import { OrderFailed } from '../failure.ts';
import { usedNames } from '../names.ts';
import { parallel } from '../parallel.ts';
import { pointingOf } from '../pointing.ts';
import { allServed } from '../served.ts';
import type { Next, StepContext } from '../step.ts';

const LOOKUPS = 8;
const NAMES_TOLD = 20;
/** Records of names are looked at again after this time. */
const RECHECK_MS = 5 * 60_000;

export async function check(context: StepContext): Promise<Next> {
  const { runtime, order, certificate } = context;
  const names = await wantedNames(context);
  if (certificate.request.challenge === 'http01') await assertServed(context, names);
  else await recordPlaces(context, await credentialOf(context), names);
  const accountId = await presentAccount(context);
  const { privateKey, csr } = await newRequest(certificate.request.keyType, names);
  const sealed = runtime.sealer.seal(privateKey, orderKeyPlace(order.certificateId));
  return { to: 'account', patch: { names, accountId, privateKey: sealed, csr } };
}

/** An account opens nothing at another address: once that of the own authority has changed, another one is asked with. */
async function presentAccount({ runtime, order, certificate }: StepContext): Promise<string | null> {
  const { accountId } = order;
  const { ca, email } = certificate.request;
  const account = accountId === null ? undefined : await AcmeAccount.byId(runtime.pools.api, accountId);
  const at = ca === 'custom' && account ? await directoryAt(runtime, ca) : null;
  if (at === null || account?.directoryUrl === at.url) return accountId;
  const external = await ownExternalAccount(runtime);
  return write(runtime, systemCall('acme'), {}, async (tx) => {
    await holdLease(tx.sql, order);
    const id = await ensureAccount(tx, runtime.sealer, { directoryUrl: at.url, email, external });
    await changeAccount(tx.sql, certificate.id, id);
    return id;
  });
}

/** A renewal leaves out names that no site of the certificate has any more. */
async function wantedNames({ runtime, certificate }: StepContext): Promise<string[]> {
  const { id, requestedNames, leaf, bindSiteId, request } = certificate;
  if (leaf === null || bindSiteId !== null) return requestedNames;
  const domains = await domainsBehind(runtime.pools.api, id);
  // Answers over HTTP are for names that a site has by its name: what a pattern alone has is shown by DNS only.
  const shown = request.challenge === 'dns01' ? domains : domains.filter(({ form }) => form !== 'pattern');
  const used = usedNames(requestedNames, shown);
  // Nobody uses it: then all of it is what somebody wanted.
  if (used.length === 0 || used.length === requestedNames.length) return requestedNames;
  await changeRequestedNames(runtime.pools.api, id, requestedNames, used);
  return used;
}

async function assertServed({ runtime, certificate, tools, now }: StepContext, names: string[]): Promise<void> {
  const sql = runtime.pools.api;
  const served = await allServed(runtime, names);
  const clusters = new Map<string, Set<string>>();
  for (const { clusterId } of served) {
    if (clusters.has(clusterId)) continue;
    const { reached, behind } = await nodesBehind(sql, clusterId, { epoch: 0n, sequence: 0n });
    if (reached + behind.length === 0) throw new OrderFailed('http01_no_nodes', {}, soon(now));
    const nodes = await edgeAddresses(sql, clusterId);
    const addresses = nodes.flatMap(({ configured, reported }) => (configured.length > 0 ? configured : reported));
    clusters.set(clusterId, new Set(addresses));
  }
  if (certificate.request.skipDnsCheck) return;
  const elsewhere: string[] = [];
  await parallel(served, LOOKUPS, async ({ name, clusterId }) => {
    if ((await pointingOf(name, clusters.get(clusterId)!, tools.resolver)) !== 'ok') elsewhere.push(name);
  });
  if (elsewhere.length > 0) {
    throw new OrderFailed('http01_dns_not_pointing', { names: elsewhere.sort().slice(0, NAMES_TOLD) }, soon(now));
  }
}

function soon(now: Date): Date {
  return new Date(now.getTime() + RECHECK_MS);
}

const ALGORITHMS = {
  ec256: { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' },
  rsa2048: {
    name: 'RSASSA-PKCS1-v1_5',
    modulusLength: 2048,
    publicExponent: new Uint8Array([1, 0, 1]),
    hash: 'SHA-256',
  },
} as const;

/** A new key, and a request with it for the names (PKCS #10 in DER). */
async function newRequest(
  keyType: CertificateRequest['keyType'],
  names: readonly string[],
): Promise<{ privateKey: Buffer; csr: Buffer }> {
  const algorithm = ALGORITHMS[keyType];
  const keys = (await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])) as webcrypto.CryptoKeyPair;
  const alternatives = names.map((value) => ({ type: 'dns' as const, value }));
  const request = await Pkcs10CertificateRequestGenerator.create(
    { keys, signingAlgorithm: algorithm, extensions: [new SubjectAlternativeNameExtension(alternatives)] },
    webcrypto,
  );
  const pkcs8 = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey));
  const key = createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' });
  return { privateKey: key.export({ format: 'der', type: 'pkcs8' }), csr: Buffer.from(request.rawData) };
}
