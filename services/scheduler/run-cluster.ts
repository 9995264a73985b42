// One run of the engine on one cluster: the zone of its access, then what is left of it elsewhere.
import type { DnsProblem } from '../../contract/resources/cluster-dns.ts';
import { MAX_DNS_RECORDS } from '../../contract/resources/cluster-dns.ts';
import { siteNames } from '../../mixins/dns/site-names.ts';
import { dnsCredentialById, setDnsCredentialError } from '../../models/certificates/dns-credential.ts';
import { hint, leaveHints } from '../../models/db/live-hint.ts';
import { dnsBinding } from '../../models/dns/binding.ts';
import { endDnsRun, holdsDnsFence, takeDnsFence } from '../../models/dns/engine.ts';
import { dnsSites } from '../../models/dns/facts.ts';
import { confirmDnsNames, dnsNames, registerDnsNames, releaseDnsNames } from '../../models/dns/name.ts';
import { type DnsRevisionRow, dnsRevision } from '../../models/dns/revision.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { AdapterError, type AdapterErrorKind } from '../dns/adapters/adapter.ts';
import { adapterKind } from '../dns/adapters/catalog.ts';
import { openAdapter } from '../dns/adapters/stored.ts';
import type { Wanted } from './plan.ts';
import { type Registry, reconcileZone, Superseded } from './reconcile.ts';

/** Shortest time between two looks at a zone that is as it should be, and until the next attempt. */
const AGAIN_SECONDS = 60;

const CODES: Readonly<Record<AdapterErrorKind, string>> = {
  denied: 'DNS_PROVIDER_AUTH_FAILED',
  not_found: 'DNS_PROVIDER_ZONE_NOT_FOUND',
  rate_limited: 'DNS_PROVIDER_RATE_LIMITED',
  invalid: 'DNS_PROVIDER_FAILED',
  conflict: 'DNS_PROVIDER_FAILED',
  unavailable: 'DNS_PROVIDER_UNREACHABLE',
  timeout: 'DNS_PROVIDER_UNREACHABLE',
  address_refused: 'DNS_ADDRESS_REFUSED',
  unsupported: 'DNS_PROVIDER_FAILED',
};

type Sql = Runtime['pools']['api'];

/** Serials of zones that were as they should be, by cluster and access: a zone with the same one need not be read. */
export class SeenSerials {
  readonly #seen = new Map<string, string>();

  matches(key: string, state: string): boolean {
    return this.#seen.get(key) === state;
  }

  keep(key: string, state: string | null): void {
    if (state === null) this.#seen.delete(key);
    else this.#seen.set(key, state);
  }
}

/** Never throws for what a provider does: that is the problem of the cluster, and the next run tries again. */
export async function runCluster(
  runtime: Runtime,
  clusterId: string,
  { seen, owns, signal }: { seen: SeenSerials; owns: () => boolean; signal: AbortSignal },
): Promise<void> {
  const sql = runtime.pools.api;
  const fence = await takeDnsFence(sql, clusterId);
  const row = await dnsBinding(sql, clusterId);
  const target = await dnsRevision(sql, clusterId, row?.target ?? null);
  if (!row || !target || target.binding.mode === 'manual') return;
  const mayGoOn = async () => owns() && !signal.aborted && (await holdsDnsFence(sql, clusterId, fence));
  const outcome = { clusterId, fence, number: target.number, asked: row.asked };
  const conflicts: string[] = [];
  let problem: DnsProblem | null = null;
  let nextSeconds = AGAIN_SECONDS;
  try {
    const desired = await desiredOf(sql, clusterId, target);
    for (const credentialId of await accessesOf(sql, clusterId, target)) {
      const own = credentialId === target.binding.credentialId && target.binding.mode === 'auto';
      const fresh = row.applied !== target.number;
      const found = await runAccess(runtime, clusterId, credentialId, own ? desired : [], {
        fresh,
        forced: row.asked > row.done || fresh || row.problem !== null,
        seen,
        mayGoOn,
        signal,
      });
      conflicts.push(...found.conflicts);
      if (own) nextSeconds = Math.max(AGAIN_SECONDS, found.driftSeconds);
    }
    if (conflicts.length > 0) problem = problemOf('DNS_RECORD_CONFLICT', '', conflicts[0]!);
  } catch (error) {
    if (error instanceof Superseded || signal.aborted) return;
    if (!(error instanceof AdapterError)) throw error;
    problem = problemOf(CODES[error.kind], error.detail, null);
    if (error.retryAfter !== null) nextSeconds = Math.min(Math.max(error.retryAfter, 5), 3600);
  }
  await endDnsRun(sql, { ...outcome, problem, conflicts, nextSeconds });
  await leaveHints(sql, [hint('settings', 'dns')]);
}

function problemOf(code: string, detail: string, name: string | null): DnsProblem {
  return { code, detail, name, at: new Date().toISOString() };
}

/** The access of the decision first: what is left elsewhere goes once the new records are there. */
async function accessesOf(sql: Sql, clusterId: string, { binding }: DnsRevisionRow): Promise<string[]> {
  const held = (await dnsNames(sql, clusterId)).map(({ credentialId }) => credentialId);
  const own = binding.mode === 'auto' && binding.credentialId !== null ? [binding.credentialId] : [];
  return [...new Set([...own, ...held])];
}

async function desiredOf(sql: Sql, clusterId: string, { binding, sets }: DnsRevisionRow): Promise<Wanted[]> {
  if (binding.mode !== 'auto') return [];
  const addresses = sets.map(
    ({ name, type, line, values }): Wanted => ({ name, type, line, values, ttl: binding.ttl }),
  );
  const sites = await dnsSites(sql, clusterId, MAX_DNS_RECORDS);
  const left = MAX_DNS_RECORDS - sets.reduce((sum, { values }) => sum + values.length, 0);
  const names = siteNames(binding, sites, left);
  return [
    ...addresses,
    ...names.map(
      ({ name, target }): Wanted => ({ name, type: 'CNAME', line: 'default', values: [target], ttl: binding.ttl }),
    ),
  ];
}

interface AccessRun {
  fresh: boolean;
  /** Read whatever the serial says. */
  forced: boolean;
  seen: SeenSerials;
  mayGoOn: () => Promise<boolean>;
  signal: AbortSignal;
}

async function runAccess(
  runtime: Runtime,
  clusterId: string,
  credentialId: string,
  desired: readonly Wanted[],
  { fresh, forced, seen, mayGoOn, signal }: AccessRun,
): Promise<{ conflicts: string[]; driftSeconds: number }> {
  const sql = runtime.pools.api;
  const row = (await dnsCredentialById(sql, credentialId))!;
  const kind = adapterKind(row.provider);
  if (!kind) throw new AdapterError('unsupported', `no adapter for ${row.provider}`);
  const { minTtl, maxTtl, drift } = kind.capabilities;
  const driftSeconds = drift === 'serial' ? 0 : drift;
  const key = `${clusterId} ${credentialId}`;
  try {
    const adapter = openAdapter(runtime, row);
    const before = drift === 'serial' ? await adapter.serial({ signal }) : null;
    const wanted = JSON.stringify(desired);
    if (!forced && before !== null && seen.matches(key, `${before} ${wanted}`)) return { conflicts: [], driftSeconds };
    const registry = registryOf(sql, clusterId, credentialId);
    const { conflicts } = await reconcileZone({
      adapter,
      desired,
      registry,
      minTtl,
      maxTtl,
      fresh,
      mayGoOn,
      signal,
    });
    // What changed in between has another serial, and is read at the next look.
    const state = drift === 'serial' && conflicts.length === 0 ? await adapter.serial({ signal }) : null;
    seen.keep(key, state === null || state !== before ? null : `${state} ${wanted}`);
    await setDnsCredentialError(sql, credentialId, null);
    return { conflicts, driftSeconds };
  } catch (error) {
    seen.keep(key, null);
    if (error instanceof AdapterError) await setDnsCredentialError(sql, credentialId, CODES[error.kind]);
    throw error;
  }
}

function registryOf(sql: Sql, clusterId: string, credentialId: string): Registry {
  return {
    owned: async () => {
      const names = (await dnsNames(sql, clusterId)).filter((one) => one.credentialId === credentialId);
      return new Map(names.map(({ name, data, written }) => [name, { data, written }]));
    },
    register: (names) => registerDnsNames(sql, clusterId, credentialId, names),
    confirm: (names) => confirmDnsNames(sql, clusterId, credentialId, names),
    release: (names) => releaseDnsNames(sql, clusterId, credentialId, names),
  };
}
