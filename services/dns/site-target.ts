import { fail } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import type { dns } from '../../contract/resources/dns.ts';
import { siteTarget } from '../../mixins/dns/site-names.ts';
import { dnsBinding } from '../../models/dns/binding.ts';
import { dnsNodes } from '../../models/dns/facts.ts';
import { isDnsNameWritten } from '../../models/dns/name.ts';
import { dnsRevision } from '../../models/dns/revision.ts';
import { siteById } from '../../models/sites/site.ts';
import type { Runtime } from '../../runtime/runtime.ts';

/** Throws SITE_NOT_FOUND. */
export async function readSiteTarget(
  { pools }: Runtime,
  { siteId }: Input<typeof dns.siteTarget>,
): Promise<Output<typeof dns.siteTarget>> {
  const sql = pools.api;
  const site = (await siteById(sql, siteId)) ?? fail('SITE_NOT_FOUND');
  const row = await dnsBinding(sql, site.clusterId);
  const target = await dnsRevision(sql, site.clusterId, row?.target ?? null);
  if (!row || row.mode === 'off' || !target || target.binding.mode === 'off') {
    return { target: null, mode: row?.mode ?? 'off', published: false, healthy: false, lines: [], retired: [] };
  }
  const { binding, sets } = target;
  const name = siteTarget(binding, siteId);
  const addresses = new Set(sets.filter(({ ofLine }) => ofLine === null).flatMap(({ values }) => values));
  const nodes = await dnsNodes(sql, [site.clusterId]);
  const overridden = new Map(
    binding.lines.flatMap(({ overrides }) => overrides).flatMap((one) => one.addresses.map((a) => [a, one.nodeId])),
  );
  const healthy = nodes.some(
    (node) =>
      node.healthy &&
      (node.addresses.some(({ address }) => addresses.has(address)) ||
        [...addresses].some((address) => overridden.get(address) === node.id)),
  );
  return {
    target: name,
    mode: row.mode,
    published: await isDnsNameWritten(sql, site.clusterId, name),
    healthy,
    lines: binding.lines.map((line) => ({
      name: line.name,
      target: binding.lineAliases ? `${line.name}.${name}` : `${line.name}.${binding.domain}`,
    })),
    retired: [],
  };
}
