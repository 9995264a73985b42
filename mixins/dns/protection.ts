// Mass-removal protection: what a change of addresses removes, and whether that is too much to happen by itself.
import { type DnsDifference, MAX_DNS_DIFFERENCES } from '../../contract/resources/cluster-dns.ts';
import type { DnsSettings } from '../../models/dns/binding.ts';
import type { AddressSet } from '../../models/dns/revision.ts';

export interface Decided {
  binding: DnsSettings;
  sets: readonly AddressSet[];
}

export interface Removal {
  removed: number;
  previous: number;
  /** A name that had addresses has none afterwards. */
  empties: boolean;
}

/** What goes from names that stay. A name that is given up, and another provider or domain, count for nothing. */
export function removalOf(before: Decided | null, after: Decided): Removal {
  const removal = { removed: 0, previous: 0, empties: false };
  if (before?.binding.mode !== 'auto' || after.binding.mode !== 'auto') return removal;
  const moved = (['credentialId', 'domain', 'allLabel'] as const).some(
    (field) => before.binding[field] !== after.binding[field],
  );
  if (moved) return removal;
  const stays = keptNames(after.binding);
  const afterBy = merged(after.sets);
  for (const [key, set] of merged(before.sets)) {
    if (!stays(set)) continue;
    const now = afterBy.get(key);
    if (now === undefined) removal.empties = true;
    removal.previous += set.values.size;
    // Backup groups took over, or gave back: the name answers, with other addresses.
    if (set.switched || now?.switched) continue;
    removal.removed += [...set.values].filter((value) => !now?.values.has(value)).length;
  }
  return removal;
}

export function isBlocked({ removed, previous, empties }: Removal, ratio: number): boolean {
  return empties || (previous > 0 && removed / previous > ratio);
}

interface Merged {
  line: string;
  ofLine: string | null;
  values: Set<string>;
  switched: boolean;
}

/** By name and line, both families. */
function merged(sets: readonly AddressSet[]): Map<string, Merged> {
  const all = new Map<string, Merged>();
  for (const { name, line, ofLine, values, switched } of sets) {
    const key = `${name} ${line}`;
    const one = all.get(key) ?? { line, ofLine, values: new Set<string>(), switched: false };
    for (const value of values) one.values.add(value);
    one.switched ||= switched;
    all.set(key, one);
  }
  return all;
}

/** Whether the settings still have the name, in the line. */
function keptNames({ lines }: DnsSettings): (set: Merged) => boolean {
  const names = new Set(lines.map(({ name }) => name));
  const resolutions = new Set<string>(lines.map(({ resolutionLine }) => resolutionLine));
  return ({ ofLine, line }) =>
    ofLine === null ? lines.length > 0 && (line === 'default' || resolutions.has(line)) : names.has(ofLine);
}

/** What changes, by name, type and line. */
export function differenceOf(
  before: readonly AddressSet[],
  after: readonly AddressSet[],
): { items: DnsDifference[]; total: number } {
  const keyOf = ({ name, type, line }: AddressSet) => `${name} ${type} ${line}`;
  const left = new Map(before.map((set) => [keyOf(set), set]));
  const right = new Map(after.map((set) => [keyOf(set), set]));
  const items: DnsDifference[] = [];
  for (const key of new Set([...left.keys(), ...right.keys()])) {
    const [one, other] = [left.get(key), right.get(key)];
    const [was, is] = [one?.values ?? [], other?.values ?? []];
    if (was.length === is.length && was.every((value, index) => value === is[index])) continue;
    const { name, type, line } = (one ?? other)!;
    items.push({ name, type, ...(line === 'default' ? {} : { line }), before: was, after: is });
  }
  return { items: items.slice(0, MAX_DNS_DIFFERENCES), total: items.length };
}
