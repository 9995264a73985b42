// Before one request brings a site its certificate: what it would ask for, and everything that stands in its way at once.
import { Resolver } from 'node:dns/promises';
import { fail } from '../../../contract/errors.ts';
import type { Input } from '../../../contract/procedure.ts';
import { MAX_CERTIFICATE_NAMES } from '../../../contract/resources/certificates.ts';
import type { HttpsBlocker, HttpsCheck, httpsCheck } from '../../../contract/resources/https-check.ts';
import { nameOfDomain, requestableName, uncoveredDomains } from '../../../contract/scalars/certificate-coverage.ts';
import type { Domain } from '../../../contract/scalars/domain.ts';
import { accountUrls } from '../../../models/certificates/acme-account.ts';
import { latestEmail, readyCertificates } from '../../../models/certificates/acme-certificate.ts';
import { nodesBehind } from '../../../models/certificates/acme-token.ts';
import { type DnsCredentialRow, dnsCredentialFor } from '../../../models/certificates/dns-credential.ts';
import { edgeAddresses } from '../../../models/nodes/edge-addresses.ts';
import { siteById } from '../../../models/sites/site.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { type Ca, caaNames, directoryAt, directoryFault } from './authority.ts';
import { askingOnce, type CaaAsked, type CaaResolver, caaAllows } from './caa.ts';
import { parallel } from './parallel.ts';
import { type AddressResolver, pointingOf } from './pointing.ts';

const QUERY_MS = 1_500;
/** For all lookups of one check, below the time that a call may take. */
const DEADLINE_MS = 6_000;
const LOOKUPS = 16;
const SHOWN = 20;
const NOWHERE = { epoch: 0n, sequence: 0n };

type CheckResolver = AddressResolver & CaaResolver;

/** Returns what is known after 6 s, and the names that were not checked by then. Throws SITE_NOT_FOUND. */
export async function checkHttps(
  runtime: Runtime,
  input: Input<typeof httpsCheck.check>,
  resolver?: CheckResolver,
  deadlineMs = DEADLINE_MS,
): Promise<HttpsCheck> {
  if (resolver) return checkUntil(runtime, input, resolver, new Deadline(deadlineMs));
  const own = new Resolver({ timeout: QUERY_MS, tries: 1 });
  try {
    return await checkUntil(runtime, input, own, new Deadline(deadlineMs));
  } finally {
    own.cancel();
  }
}

/** Notes the names whose work did not end in time. */
class Deadline {
  readonly unchecked = new Set<string>();
  readonly #over: Promise<void>;
  readonly #timer: NodeJS.Timeout;

  constructor(ms: number) {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#over = promise;
    this.#timer = setTimeout(resolve, ms);
  }

  /** Waits for work that is about these names until it or the time ends. What fails later is nobody's any more. */
  async wait(names: readonly string[], work: Promise<void>): Promise<void> {
    const done = work.then(() => true);
    const ended = await Promise.race([done, this.#over.then(() => false)]);
    if (ended) return;
    done.catch(() => undefined);
    for (const name of names) this.unchecked.add(name);
  }

  end(): void {
    clearTimeout(this.#timer);
  }
}

async function checkUntil(
  runtime: Runtime,
  { id, ca = 'letsencrypt' }: Input<typeof httpsCheck.check>,
  resolver: CheckResolver,
  deadline: Deadline,
): Promise<HttpsCheck> {
  const sql = runtime.pools.api;
  const site = (await siteById(sql, id)) ?? fail('SITE_NOT_FOUND');
  const names = [...new Set(site.domains.flatMap((domain) => requestableName(domain) ?? []))].slice(
    0,
    MAX_CERTIFICATE_NAMES,
  );
  const wild = names.filter((name) => name.startsWith('*.'));
  const challenge = wild.length > 0 ? 'dns01' : 'http01';
  const credential = wild.length > 0 ? await dnsCredentialFor(sql, names.map(bare)) : undefined;
  const method = challenge === 'dns01' ? 'dns-01' : 'http-01';
  const [first, second] = await Promise.all([
    wild.length > 0
      ? dns01Blockers(credential, wild)
      : names.length > 0
        ? http01Blockers(runtime, site, names, resolver, deadline)
        : [],
    authorityBlockers(runtime, ca, names, method, resolver, deadline),
  ]);
  deadline.end();
  return {
    request: {
      name: site.name,
      names,
      email: await latestEmail(sql),
      challenge,
      dnsCredentialId: credential?.id ?? null,
    },
    blockers: [...(names.length === 0 ? [{ code: 'no_certificate_names' } as const] : []), ...first, ...second],
    unchecked: names.filter((name) => deadline.unchecked.has(name)),
    certificates: await covering(runtime, site.domains),
  };
}

/** What the authority itself and CAA records say. */
async function authorityBlockers(
  runtime: Runtime,
  ca: Ca,
  names: readonly string[],
  method: CaaAsked['method'],
  resolver: CaaResolver,
  deadline: Deadline,
): Promise<HttpsBlocker[]> {
  let found: Awaited<ReturnType<typeof authorityOf>> | undefined;
  await deadline.wait(
    names,
    authorityOf(runtime, ca).then((answer) => {
      found = answer;
    }),
  );
  if (found === undefined) return [];
  if ('blocker' in found) return [found.blocker];
  return found.authority.length > 0 ? caaBlockers(names, { ...found, method }, askingOnce(resolver), deadline) : [];
}

/** What CAA records can name of the authority and our accounts at it, or why nobody knows. */
async function authorityOf(
  runtime: Runtime,
  ca: Ca,
): Promise<Pick<CaaAsked, 'authority' | 'accounts'> | { blocker: HttpsBlocker }> {
  const at = await directoryAt(runtime, ca);
  if (at === null) return { blocker: { code: 'directory_failed', reason: 'missing' } };
  try {
    return { authority: await caaNames(runtime, ca), accounts: await accountUrls(runtime.pools.api, at.url) };
  } catch (error) {
    return { blocker: { code: 'directory_failed', reason: directoryFault(error) } };
  }
}

function bare(name: string): string {
  return name.replace(/^[*][.]/, '');
}

function dns01Blockers(credential: DnsCredentialRow | undefined, wild: string[]): HttpsBlocker[] {
  if (!credential) return [{ code: 'dns_credential_missing', names: wild }];
  const { name, lastError } = credential;
  return lastError === null ? [] : [{ code: 'dns_credential_failed', credential: name, error: lastError }];
}

async function http01Blockers(
  { pools }: Runtime,
  site: { clusterId: string; clusterName: string },
  names: readonly string[],
  resolver: AddressResolver,
  deadline: Deadline,
): Promise<HttpsBlocker[]> {
  const found: HttpsBlocker[] = [];
  const { reached, behind, unable } = await nodesBehind(pools.api, site.clusterId, NOWHERE);
  if (reached + behind.length + unable.length === 0) found.push({ code: 'nodes_offline', cluster: site.clusterName });
  if (unable.length > 0) {
    found.push({ code: 'nodes_lack_http01', nodes: unable.slice(0, SHOWN).map(({ name }) => name) });
  }
  const nodes = await edgeAddresses(pools.api, site.clusterId);
  const addresses = new Set(
    nodes.flatMap(({ configured, reported }) => (configured.length > 0 ? configured : reported)),
  );
  const pointing = new Map<string, 'ok' | 'unresolved' | 'elsewhere'>();
  await parallel(names, LOOKUPS, (name) =>
    deadline.wait(
      [name],
      pointingOf(name, addresses, resolver).then((where) => void pointing.set(name, where)),
    ),
  );
  for (const name of names) {
    const where = pointing.get(name);
    if (where !== undefined && where !== 'ok') found.push({ code: 'dns_not_pointing', name, pointing: where });
  }
  return found;
}

async function caaBlockers(
  names: readonly string[],
  asked: CaaAsked,
  resolver: CaaResolver,
  deadline: Deadline,
): Promise<HttpsBlocker[]> {
  const forbidden = new Set<string>();
  await parallel(names, LOOKUPS, (name) =>
    deadline.wait(
      [name],
      caaAllows(name, asked, resolver).then((allowed) => void (allowed || forbidden.add(name))),
    ),
  );
  return names.filter((name) => forbidden.has(name)).map((name) => ({ code: 'caa_forbidden', name }));
}

async function covering({ pools }: Runtime, domains: readonly Domain[]): Promise<HttpsCheck['certificates']> {
  const named = domains.filter((domain) => nameOfDomain(domain) !== null);
  const [first] = named;
  if (!first) return [];
  const name = nameOfDomain(first)!;
  const ready = await readyCertificates(pools.api, [name, name.replace(/^[^.]*/, '*')]);
  const good = ready.filter(({ names }) => uncoveredDomains(named, names).length === 0);
  return good.slice(0, SHOWN).map(({ id, name: called }) => ({ id, name: called }));
}
