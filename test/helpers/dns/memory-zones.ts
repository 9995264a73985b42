// Records of zones in memory, for servers that are written from the documentation of a provider: they refuse what providers
// refuse.
import { isIPv4, isIPv6 } from 'node:net';
import { domainToASCII, domainToUnicode } from 'node:url';

export interface MemoryRecord {
  id: string;
  /** Absolute, as punycode. */
  name: string;
  type: string;
  /** Of the provider. */
  line: string;
  ttl: number;
  value: string;
}

export type Refusal = 'invalid' | 'conflict' | 'duplicate' | 'missing' | 'ttl';

/** As providers show names to people. */
export function shownName(name: string): string {
  return domainToUnicode(name) || name;
}

/** A change that the provider does not make. */
export class Refused extends Error {
  readonly reason: Refusal;
  constructor(reason: Refusal) {
    super(reason);
    this.reason = reason;
  }
}

export class MemoryZones {
  readonly zones = new Map<string, Map<string, MemoryRecord>>();
  #last = 1000;

  constructor(names: readonly string[]) {
    for (const name of names) this.zones.set(name, new Map());
  }

  records(zone: string): MemoryRecord[] {
    return [...this.zones.get(zone)!.values()];
  }

  /** Throws {@link Refused}. */
  create(zone: string, record: Omit<MemoryRecord, 'id'>): MemoryRecord {
    const made = { ...record, name: asciiName(record.name), id: String(++this.#last) };
    this.#assert(zone, made, null);
    this.zones.get(zone)!.set(made.id, made);
    return made;
  }

  /** Throws {@link Refused}. */
  update(zone: string, id: string, change: Partial<MemoryRecord>): MemoryRecord {
    const before = this.zones.get(zone)!.get(id);
    if (!before) throw new Refused('missing');
    const made = { ...before, ...change, id };
    made.name = asciiName(made.name);
    this.#assert(zone, made, id);
    this.zones.get(zone)!.set(id, made);
    return made;
  }

  /** Throws {@link Refused}. */
  delete(zone: string, id: string): void {
    if (!this.zones.get(zone)!.delete(id)) throw new Refused('missing');
  }

  /** By name and type, on every line. */
  deleteSet(zone: string, name: string, type: string): void {
    for (const record of this.records(zone)) {
      if (record.name === asciiName(name) && record.type === type) this.delete(zone, record.id);
    }
  }

  #assert(zone: string, { name, type, line, value }: Omit<MemoryRecord, 'id'>, own: string | null): void {
    const labels = name.split('.');
    if (labels.some((label) => label.length === 0 || label.length > 63)) throw new Refused('invalid');
    if (name !== zone && !name.endsWith(`.${zone}`)) throw new Refused('invalid');
    if (type === 'A' && !isIPv4(value)) throw new Refused('invalid');
    if (type === 'AAAA' && !isIPv6(value)) throw new Refused('invalid');
    for (const other of this.#at(zone, name)) {
      if (other.id === own || other.line !== line) continue;
      if (other.type === type && other.value === value) throw new Refused('duplicate');
      if (other.type === 'CNAME' || type === 'CNAME') throw new Refused('conflict');
    }
  }

  #at(zone: string, name: string): MemoryRecord[] {
    return this.records(zone).filter((record) => record.name === name);
  }
}

function asciiName(name: string): string {
  return domainToASCII(name) || name.toLowerCase();
}
