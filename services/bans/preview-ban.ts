import { ContractError } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import type { bans } from '../../contract/resources/bans.ts';
import {
  type Cidr,
  contains,
  formatAddress,
  formatCidr,
  overlaps,
  parseAddress,
  parseCidr,
} from '../../contract/scalars/cidr.ts';
import { activeManualBan } from '../../models/bans/ban.ts';
import { originsIn, sessionsIn, trustedByClusters } from '../../models/bans/ban-impact.ts';
import { banCount } from '../../models/bans/ban-list.ts';
import { readBanSettings } from '../../models/bans/ban-setting.ts';
import { protectedIn } from '../../models/bans/protected-addresses.ts';
import { siteById } from '../../models/sites/site.ts';
import type { Call } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { assertUnprotected, checkBanInput } from './check-ban.ts';
import { ConsoleAddresses } from './console-addresses.ts';

type Preview = Output<typeof bans.preview>;

/** Answers what creating a ban would do now: the same checks, nothing written. Throws BAD_REQUEST only. */
export function banPreviewer(runtime: Runtime): (input: Input<typeof bans.preview>, call: Call) => Promise<Preview> {
  const own = new ConsoleAddresses(runtime);
  return (input, call) => previewBan(runtime, own, input, call);
}

async function previewBan(
  runtime: Runtime,
  own: ConsoleAddresses,
  input: Input<typeof bans.preview>,
  call: Call,
): Promise<Preview> {
  const cidr = parseCidr(input.cidr);
  const preview: Preview = {
    cidr: cidr && formatCidr(cidr),
    addresses: cidr ? addressCount(cidr) : '0',
    renews: null,
    refusal: null,
    coveredBans: 0,
    warnings: cidr ? await warningsFor(runtime, own, cidr, input, call.ip) : [],
  };
  try {
    await look(runtime, input, preview);
  } catch (error) {
    if (!(error instanceof ContractError) || error.type === 'BAD_REQUEST') throw error;
    preview.refusal = { code: error.type, data: error.data };
  }
  return preview;
}

async function look({ pools }: Runtime, input: Input<typeof bans.preview>, preview: Preview): Promise<void> {
  const sql = pools.bans;
  const now = new Date();
  const { cidr, text, siteId } = checkBanInput(input);
  const site = siteId === null ? undefined : await siteById(sql, siteId);
  if (siteId !== null && !site) throw new ContractError('SITE_NOT_FOUND');
  const filter = { scope: input.scope, siteId: siteId ?? undefined, cidr: text };
  preview.coveredBans = await banCount(sql, { ...filter, inside: true }, now);
  assertUnprotected(cidr, await protectedIn(sql, text, site?.clusterId ?? null));
  const before = await activeManualBan(sql, siteId, text, now);
  if (before) {
    preview.renews = { id: before.id, expiresAt: before.expiresAt.toISOString() };
    return;
  }
  const { maxTotal } = await readBanSettings(sql);
  const active = await banCount(sql, { source: 'manual' }, now);
  if (active >= maxTotal) throw new ContractError('BAN_PLATFORM_LIMIT', { limit: maxTotal });
}

function addressCount({ family, prefix }: Cidr): string {
  return (1n << BigInt((family === 4 ? 32 : 128) - prefix)).toString();
}

async function warningsFor(
  { pools, env }: Runtime,
  console: ConsoleAddresses,
  cidr: Cidr,
  { scope, siteId }: Input<typeof bans.preview>,
  ip: string | null,
): Promise<Preview['warnings']> {
  const text = formatCidr(cidr);
  const own = ip === null ? null : parseAddress(ip);
  const onlySite = scope === 'site' ? (siteId ?? null) : null;
  const [consoles, trusted, origins, sessions] = await Promise.all([
    console.inside(cidr),
    trustedByClusters(pools.api, text, onlySite),
    originsIn(pools.api, text, onlySite),
    sessionsIn(pools.api, text),
  ]);
  const proxies = [...env.trustedProxies.filter((entry) => overlaps(parseCidr(entry)!, cidr)), ...trusted];
  return [
    ...(own && contains(cidr, own) ? [{ kind: 'own_address' as const, address: formatAddress(own), count: 1 }] : []),
    ...counted('console', consoles),
    ...counted('proxies', [...new Set(proxies)]),
    ...(origins ? [{ kind: 'origins' as const, ...origins }] : []),
    ...(sessions ? [{ kind: 'sessions' as const, ...sessions }] : []),
  ];
}

function counted<K extends string>(
  kind: K,
  addresses: readonly string[],
): { kind: K; address: string; count: number }[] {
  const [address] = addresses;
  return address === undefined ? [] : [{ kind, address, count: addresses.length }];
}
