// Which addresses the names of a cluster should have: a pure function of its settings and its nodes.
import type { DnsLine } from '../../contract/resources/cluster-dns.ts';
import { compareCidr, formatAddress, parseAddress } from '../../contract/scalars/cidr.ts';
import { RESOLUTION_LINES } from '../../contract/scalars/resolution-line.ts';
import type { DnsSettings } from '../../models/dns/binding.ts';
import type { DnsNodeFact } from '../../models/dns/facts.ts';
import type { AddressSet } from '../../models/dns/revision.ts';
import { specialRange } from '../../proto/address-policy.ts';

export interface SchedulingAddress {
  address: string;
  level: 0 | 1 | 2;
  source: 'reported' | 'configured';
  reachable: boolean;
}

/** Addresses of a node that visitors can be given: what people configured, else the public ones it reported. */
export function schedulingAddresses({ addresses }: Pick<DnsNodeFact, 'addresses'>): SchedulingAddress[] {
  return addresses
    .filter(({ address, source }) => source === 'configured' || specialRange(address) === null)
    .map(({ address, level, source }) => ({
      address,
      level: level as SchedulingAddress['level'],
      source,
      // Only heartbeats tell of nodes so far, and they tell of no single address.
      reachable: true,
    }));
}

/** The lowest level with an address that can be reached; null: there is none. */
export function schedulingLevel(addresses: readonly SchedulingAddress[]): 0 | 1 | 2 | null {
  const levels = addresses.filter(({ reachable }) => reachable).map(({ level }) => level);
  return levels.length === 0 ? null : (Math.min(...levels) as 0 | 1 | 2);
}

function usedAddresses(node: DnsNodeFact): string[] {
  const all = schedulingAddresses(node);
  const level = schedulingLevel(all);
  return all.filter((one) => one.level === level && one.reachable).map(({ address }) => address);
}

interface Answer {
  addresses: Set<string>;
  switched: boolean;
}

/** Sets of the name of all lines and of each line; empty ones are left out. */
export function addressSets(settings: DnsSettings, nodes: readonly DnsNodeFact[]): AddressSet[] {
  if (settings.mode === 'off') return [];
  const byGroup = Map.groupBy(nodes, ({ groupId }) => groupId);
  const answers = settings.lines.map((line) => ({ line, answer: answerOf(line, settings.mode, byGroup) }));
  const sets: AddressSet[] = [];
  for (const { line, answer } of answers) {
    sets.push(...setsOf(`${line.name}.${settings.domain}`, 'default', line.name, answer));
  }
  const all = `${settings.allLabel}.${settings.domain}`;
  for (const resolution of RESOLUTION_LINES) {
    const own = answers.filter(({ line }) => line.resolutionLine === resolution);
    let answer = union(own.map((one) => one.answer));
    if (resolution === 'default' && answer.addresses.size === 0) answer = union(answers.map((one) => one.answer));
    sets.push(...setsOf(all, resolution, null, answer));
  }
  return sets;
}

function answerOf(
  { nodeGroupId, overrides, backupNodeGroupIds, minHealthyIps }: DnsLine,
  mode: DnsSettings['mode'],
  byGroup: ReadonlyMap<string, readonly DnsNodeFact[]>,
): Answer {
  const given = new Map(overrides.map(({ nodeId, addresses }) => [nodeId, addresses]));
  const addressesOf = (groupId: string): Set<string> =>
    new Set(
      (byGroup.get(groupId) ?? [])
        .filter((node) => (mode === 'manual' ? node.active : node.healthy))
        .flatMap((node) => given.get(node.id) ?? usedAddresses(node)),
    );
  const own = addressesOf(nodeGroupId);
  if (mode === 'manual' || own.size >= minHealthyIps || backupNodeGroupIds.length === 0) {
    return { addresses: own, switched: false };
  }
  const backups = backupNodeGroupIds.map(addressesOf);
  const enough = backups.find(({ size }) => size >= minHealthyIps);
  return { addresses: enough ?? new Set([own, ...backups].flatMap((set) => [...set])), switched: true };
}

function union(answers: readonly Answer[]): Answer {
  return {
    addresses: new Set(answers.flatMap(({ addresses }) => [...addresses])),
    switched: answers.some(({ switched }) => switched),
  };
}

function setsOf(
  name: string,
  line: AddressSet['line'],
  ofLine: string | null,
  { addresses, switched }: Answer,
): AddressSet[] {
  const parsed = [...addresses].map((text) => parseAddress(text)!).sort(compareCidr);
  return ([4, 6] as const).flatMap((family) => {
    const values = parsed.filter((one) => one.family === family).map(formatAddress);
    const type = family === 4 ? ('A' as const) : ('AAAA' as const);
    return values.length === 0 ? [] : [{ name, type, line, values, ofLine, switched }];
  });
}
