// Records of a decision as people see them: what each belongs to, and whether its node is healthy.
import type { DnsRecord } from '../../contract/resources/cluster-dns.ts';
import { MAX_DNS_RECORDS } from '../../contract/resources/cluster-dns.ts';
import { siteNames } from '../../mixins/dns/site-names.ts';
import type { DnsSettings } from '../../models/dns/binding.ts';
import { type DnsNodeFact, dnsNodes, dnsSites } from '../../models/dns/facts.ts';
import type { AddressSet } from '../../models/dns/revision.ts';
import type { Runtime } from '../../runtime/runtime.ts';

type Sql = Runtime['pools']['api'];

/** Of all lines first, then by line, then the sites. */
export async function recordsOf(
  sql: Sql,
  clusterId: string,
  { binding, sets, ttl = binding.ttl }: { binding: DnsSettings; sets: readonly AddressSet[]; ttl?: number },
): Promise<DnsRecord[]> {
  if (binding.mode === 'off') return [];
  const nodes = await dnsNodes(sql, [clusterId]);
  const addresses = addressRecords(binding, sets, nodes, ttl);
  const sites = await dnsSites(sql, clusterId, MAX_DNS_RECORDS);
  const names = new Map(sites.map(({ id, name }) => [id, name]));
  const cnames = siteNames(binding, sites, MAX_DNS_RECORDS - addresses.length);
  return [
    ...addresses,
    ...cnames.map(
      ({ name, siteId, target }): DnsRecord => ({
        name,
        type: 'CNAME',
        data: target,
        ttl,
        owner: 'site',
        ownerId: siteId,
        ownerName: names.get(siteId) ?? null,
        nodeName: null,
        healthy: null,
      }),
    ),
  ];
}

function addressRecords(
  { lines }: DnsSettings,
  sets: readonly AddressSet[],
  nodes: readonly DnsNodeFact[],
  ttl: number,
): DnsRecord[] {
  const nodeOf = new Map<string, DnsNodeFact>();
  for (const node of nodes) for (const { address } of node.addresses) nodeOf.set(address, node);
  const byId = new Map(nodes.map((node) => [node.id, node]));
  for (const { overrides } of lines) {
    for (const { nodeId, addresses } of overrides) {
      const node = byId.get(nodeId);
      if (node) for (const address of addresses) nodeOf.set(address, node);
    }
  }
  const ordered = [...sets].sort((one, other) => Number(one.ofLine !== null) - Number(other.ofLine !== null));
  return ordered.flatMap(({ name, type, line, values, ofLine }) =>
    values.map((data): DnsRecord => {
      const node = nodeOf.get(data);
      return {
        name,
        type,
        data,
        ttl,
        ...(line === 'default' ? {} : { line }),
        owner: ofLine === null ? 'all' : 'line',
        ownerId: ofLine,
        ownerName: ofLine,
        nodeName: node?.name ?? null,
        healthy: node?.healthy ?? false,
      };
    }),
  );
}
