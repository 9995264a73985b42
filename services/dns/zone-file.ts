// Records in the format that BIND and most providers read.
import type { DnsRecord } from '../../contract/resources/cluster-dns.ts';

/** Names are relative to the origin. A zone file knows no resolution lines: records of others are comments. */
export function zoneFile(origin: string, ttl: number, records: readonly DnsRecord[]): string {
  const lines = records.map((record) => {
    const text = `${relative(record.name, origin)} ${record.ttl} IN ${record.type} ${dataOf(record)}`;
    return record.line === undefined ? text : `; line ${record.line}: ${text}`;
  });
  return [`$ORIGIN ${origin}.`, `$TTL ${ttl}`, ...lines, ''].join('\n');
}

function relative(name: string, origin: string): string {
  return name === origin ? '@' : name.slice(0, -origin.length - 1);
}

function dataOf({ type, data }: DnsRecord): string {
  return type === 'CNAME' ? `${data}.` : data;
}
