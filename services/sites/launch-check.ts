// What is left to do before visitors reach a site: where its names should point and where they point.
import { randomBytes } from 'node:crypto';
import { Resolver } from 'node:dns/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { fail } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import type { sites } from '../../contract/resources/sites.ts';
import { compareCidr, formatAddress, parseAddress } from '../../contract/scalars/cidr.ts';
import { type Domain, formatDomain } from '../../contract/scalars/domain.ts';
import { edgeAddresses } from '../../models/nodes/edge-addresses.ts';
import { chosenGroups } from '../../models/rules/rule-set.ts';
import { readOriginAllowList } from '../../models/sites/origin-allow-list.ts';
import { siteView } from '../../models/sites/site-view.ts';
import { specialRange } from '../../proto/address-policy.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { certificateState } from './certificate-state.ts';
import { leftOutOrigins } from './origin-policy.ts';

type Launch = Output<typeof sites.launch>;
type Pointing = Launch['domains'][number]['pointing'];
/** What the check needs of a resolver. */
export type NameResolver = Pick<Resolver, 'resolve4' | 'resolve6' | 'cancel'>;

const QUERY_MS = 1500;
const ALL_MS = 5000;
const PARALLEL = 8;
/** Answers of a resolver that mean the name has no such address. */
const NO_ADDRESS = new Set(['ENOTFOUND', 'ENODATA']);

/** Resolves the site's domains, at most 5 s. Throws SITE_NOT_FOUND. */
export async function launchCheck(
  { pools }: Runtime,
  input: Input<typeof sites.launch>,
  resolver: NameResolver = new Resolver({ timeout: QUERY_MS, tries: 1 }),
): Promise<Launch> {
  const { site: row, delivery } = (await siteView(pools.api, input.id)) ?? fail('SITE_NOT_FOUND');
  const addresses = publicFirst(await edgeAddresses(pools.api, row.clusterId));
  const domains = await checkDomains(row.domains, addresses, resolver);
  const certificate = await certificateState(pools.api, row, new Date());
  const [allow, chosen] = await Promise.all([readOriginAllowList(pools.api), chosenGroups(pools.api, row.id)]);
  const leftOut = leftOutOrigins(row.origins, allow, chosen);
  return { addresses, domains, certificate, leftOutOrigins: leftOut, delivery };
}

/** Of each node the configured addresses, else the public ones it reported; distinct, IPv4 first. */
function publicFirst(nodes: readonly { configured: string[]; reported: string[] }[]): string[] {
  const texts = nodes.flatMap(({ configured, reported }) =>
    configured.length > 0 ? configured : reported.filter((address) => specialRange(address) === null),
  );
  const parsed = [...new Set(texts)].map((text) => parseAddress(text)!);
  return [...new Set(parsed.sort(compareCidr).map(formatAddress))];
}

async function checkDomains(
  domains: readonly Domain[],
  addresses: readonly string[],
  resolver: NameResolver,
): Promise<Launch['domains']> {
  const results: Launch['domains'] = domains.map((domain) => ({
    name: formatDomain(domain),
    probe: probeName(domain),
    pointing: probeName(domain) === null ? 'unchecked' : 'unknown',
  }));
  const queue = results.filter(({ probe }) => probe !== null);
  const expected = new Set(addresses);
  const worker = async () => {
    for (let result = queue.shift(); result !== undefined; result = queue.shift()) {
      result.pointing = await pointingOf(result.probe!, expected, resolver);
    }
  };
  const workers = Promise.all(Array.from({ length: Math.min(PARALLEL, queue.length) }, worker));
  const deadline = new AbortController();
  const timeout = sleep(ALL_MS, undefined, { signal: deadline.signal }).then(
    () => {
      // Names still waiting stay unknown.
      queue.length = 0;
      resolver.cancel();
    },
    () => undefined,
  );
  await Promise.race([workers, timeout]);
  deadline.abort();
  // A copy: a worker that ends late changes nothing that was answered.
  return results.map((result) => ({ ...result }));
}

/** A name under a wildcard is resolved through a label that nobody has set up by itself. */
function probeName({ form, name }: Domain): string | null {
  if (form === 'exact') return name;
  if (form === 'wildcard') return `svc-probe-${randomBytes(4).toString('hex')}.${name}`;
  return null;
}

async function pointingOf(name: string, expected: ReadonlySet<string>, resolver: NameResolver): Promise<Pointing> {
  const answers = await Promise.all([resolver.resolve4(name), resolver.resolve6(name)].map(settle));
  const found = answers.flatMap((answer) => answer ?? []);
  if (found.length === 0) return answers.includes(null) ? 'unknown' : 'unresolved';
  if (expected.size === 0) return 'unknown';
  const canonical = found.map((text) => formatAddress(parseAddress(text)!));
  return canonical.every((address) => expected.has(address)) ? 'ok' : 'elsewhere';
}

/** Addresses, [] when the name has none, null when the resolver did not say. */
async function settle(answer: Promise<string[]>): Promise<string[] | null> {
  try {
    return await answer;
  } catch (error) {
    return NO_ADDRESS.has((error as NodeJS.ErrnoException).code ?? '') ? [] : null;
  }
}
