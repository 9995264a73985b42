// Asks the servers that authorities ask: those that answer for the zone themselves, each one of them.
import { Resolver } from 'node:dns/promises';
import { AddressRefused, resolveChecked, specialRange } from '../../../../proto/address-policy.ts';
import type { TxtRecord } from '../../../dns/adapters/adapter.ts';
import { isInside } from '../../../dns/adapters/names.ts';
import { formatServerAddress, parseServerAddress } from '../../../dns/adapters/server-address.ts';
import type { NameResolver } from '../tools.ts';
import { DnsFailed } from './provider.ts';

const QUERY_MS = 2_000;
const MAX_ALIASES = 8;
const MAX_SERVERS = 16;
/** What says that there is no such record, and not that nobody knows. */
const NONE = new Set(['ENOTFOUND', 'ENODATA']);

/** One server by all its addresses, as resolvers take them. */
export type Server = readonly string[];

export interface ZoneServers {
  zone: string;
  /** Of the credential; empty: those that NS records name. */
  nameservers: readonly string[];
  /** CIDRs of private networks in which those of the credential may be. */
  allow: readonly string[];
}

/** Where a chain of aliases ends that begins with the name. Throws {@link DnsFailed}. */
export async function followAliases(name: string, zone: ZoneServers, resolver: NameResolver): Promise<string> {
  const own = zone.nameservers.length > 0 ? (await ownServers(zone)).flat() : [];
  let at = name;
  for (let hops = 0; hops < MAX_ALIASES; hops++) {
    // Servers of one's own know their zone, and nothing else.
    const asked = own.length > 0 && isInside(at, zone.zone) ? resolverAt(own) : resolver;
    const [to] = await found(asked.resolveCname(at));
    if (to === undefined) return at;
    at = to.toLowerCase().replace(/[.]$/, '');
  }
  throw new DnsFailed('dns_unresolved');
}

/** The servers that answer for a name of the zone. Throws {@link DnsFailed}. */
export async function serversOf(name: string, zone: ZoneServers, resolver: NameResolver): Promise<Server[]> {
  if (zone.nameservers.length > 0) return ownServers(zone);
  let hosts: string[] = [];
  // A part of the zone may have been handed on to other servers.
  for (let at = name; hosts.length === 0 && isInside(at, zone.zone); at = at.slice(at.indexOf('.') + 1)) {
    hosts = await found(resolver.resolveNs(at));
    if (!at.includes('.')) break;
  }
  if (hosts.length === 0) throw new DnsFailed('dns_unresolved');
  const servers = await Promise.all(hosts.slice(0, MAX_SERVERS).map((host) => addressesOf(host, resolver)));
  return servers.filter((addresses) => addresses.length > 0);
}

/** Whoever writes into the zone could name any address in it: those of private networks are not asked. */
async function addressesOf(host: string, resolver: NameResolver): Promise<string[]> {
  const addresses = await Promise.all([found(resolver.resolve4(host)), found(resolver.resolve6(host))]);
  const all = addresses.flat().filter((address) => specialRange(address) === null);
  return all.map((address) => formatServerAddress({ host: address, port: 53 }));
}

async function ownServers({ nameservers, allow }: ZoneServers): Promise<Server[]> {
  return Promise.all(
    nameservers.map(async (text) => {
      const { host, port } = parseServerAddress(text)!;
      const addresses = await resolveChecked(host, allow, QUERY_MS).catch((error: unknown) => {
        const refused = error instanceof AddressRefused && error.reason === 'forbidden';
        throw new DnsFailed(refused ? 'dns_address_refused' : 'dns_unresolved', error);
      });
      return addresses.map((address) => formatServerAddress({ host: address, port }));
    }),
  );
}

/** Whether each of the servers answers the value; one that cannot be asked at any of its addresses does not. */
export async function allAnswer(servers: readonly Server[], record: TxtRecord): Promise<boolean> {
  if (servers.length === 0) return false;
  const answers = await Promise.all(servers.map((addresses) => answersAt(addresses, record)));
  return answers.every(Boolean);
}

async function answersAt(addresses: Server, { name, value }: TxtRecord): Promise<boolean> {
  const seen = await Promise.all(
    addresses.map(async (address) => {
      const texts = await resolverAt([address])
        .resolveTxt(name)
        .catch((error: NodeJS.ErrnoException) => (NONE.has(error.code ?? '') ? [] : null));
      return texts?.some((chunks) => chunks.join('') === value) ?? null;
    }),
  );
  return seen.includes(true) && !seen.includes(false);
}

function resolverAt(addresses: readonly string[]): Resolver {
  const resolver = new Resolver({ timeout: QUERY_MS, tries: 2 });
  resolver.setServers(addresses);
  return resolver;
}

async function found(answer: Promise<string[]>): Promise<string[]> {
  try {
    return await answer;
  } catch (error) {
    if (NONE.has((error as NodeJS.ErrnoException).code ?? '')) return [];
    throw new DnsFailed('dns_unresolved', error);
  }
}
