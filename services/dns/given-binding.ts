// DNS settings of a cluster as people give them, checked against its groups and nodes, the access, and other clusters.
import { badField, fail } from '../../contract/errors.ts';
import type { Input } from '../../contract/procedure.ts';
import type { clusterDns, DnsLine } from '../../contract/resources/cluster-dns.ts';
import { normaliseHostName } from '../../contract/scalars/host-name.ts';
import { nodeAddressOf } from '../../mixins/dns/node-address.ts';
import { dnsCredentialById, keepDnsCredential } from '../../models/certificates/dns-credential.ts';
import { type DnsSettings, lockDnsZone, neighbourBindings, UNMANAGED } from '../../models/dns/binding.ts';
import { dnsNodes } from '../../models/dns/facts.ts';
import { NodeGroup } from '../../models/nodes/node-group.ts';
import type { Tx } from '../../runtime/write.ts';
import { adapterKind } from './adapters/catalog.ts';

type Given = Omit<Input<typeof clusterDns.preview>, 'id'>;

const ALL_LABEL = /^all(-[0-9]+)?$/;

/** Throws what is wrong with them. `before` keeps its label of all lines where it can. */
export async function checkedBinding(
  tx: Tx,
  clusterId: string,
  given: Given,
  before: DnsSettings,
): Promise<DnsSettings> {
  const settings: DnsSettings = {
    mode: given.mode ?? 'off',
    credentialId: given.providerId ?? null,
    domain: '',
    ttl: given.ttl ?? UNMANAGED.ttl,
    lines: (given.lines ?? []).map((line) => ({
      overrides: [],
      resolutionLine: 'default',
      backupNodeGroupIds: [],
      minHealthyIps: 1,
      ...line,
    })),
    lineAliases: given.lineAliases ?? false,
    allLabel: before.allLabel,
  };
  const domain = (given.domain ?? '').trim();
  if (domain !== '') settings.domain = normaliseHostName(domain) ?? badField('/domain', 'dnsName');
  else if (settings.mode !== 'off') badField('/domain', 'required');
  await checkLines(tx, clusterId, settings.lines);
  if (settings.credentialId === null) {
    if (settings.mode === 'auto') badField('/providerId', 'required');
    return { ...settings, allLabel: UNMANAGED.allLabel };
  }
  return { ...settings, allLabel: await checkZone(tx, clusterId, settings) };
}

async function checkLines(tx: Tx, clusterId: string, lines: readonly DnsLine[]): Promise<void> {
  const [names, groups] = [new Set<string>(), new Set<string>()];
  const named = new Set(lines.flatMap(({ nodeGroupId, backupNodeGroupIds }) => [nodeGroupId, ...backupNodeGroupIds]));
  const known = await NodeGroup.query(tx.sql)
    .findByIds([...named])
    .where({ cluster_id: clusterId })
    .forKeyShare();
  const ids = new Set(known.map(({ id }) => id));
  const nodes = lines.some(({ overrides }) => overrides.length > 0)
    ? new Set((await dnsNodes(tx.sql, [clusterId])).map(({ id }) => id))
    : new Set<string>();
  for (const [index, line] of lines.entries()) {
    const at = `/lines/${index}`;
    if (ALL_LABEL.test(line.name)) badField(`${at}/name`, 'reserved');
    if (names.has(line.name)) fail('DNS_POLICY_INVALID', { line: line.name, fault: 'name_twice' });
    if (groups.has(line.nodeGroupId)) fail('DNS_POLICY_INVALID', { line: line.name, fault: 'group_twice' });
    names.add(line.name);
    groups.add(line.nodeGroupId);
    if (line.backupNodeGroupIds.includes(line.nodeGroupId)) {
      fail('DNS_POLICY_INVALID', { line: line.name, fault: 'backup_is_own' });
    }
    for (const id of [line.nodeGroupId, ...line.backupNodeGroupIds]) if (!ids.has(id)) fail('NODE_GROUP_NOT_FOUND');
    const overridden = new Set<string>();
    for (const [place, one] of line.overrides.entries()) {
      if (!nodes.has(one.nodeId)) fail('NODE_NOT_FOUND');
      if (overridden.has(one.nodeId)) fail('DNS_POLICY_INVALID', { line: line.name, fault: 'override_twice' });
      overridden.add(one.nodeId);
      const path = `${at}/overrides/${place}/addresses`;
      one.addresses = one.addresses.map((address, number) => nodeAddressOf(address, `${path}/${number}`));
      if (new Set(one.addresses).size < one.addresses.length) {
        fail('NODE_ADDRESS_INVALID', { address: one.addresses[0]!, path });
      }
    }
  }
}

/** Returns the label of the name of all lines. */
async function checkZone(tx: Tx, clusterId: string, settings: DnsSettings): Promise<string> {
  const { credentialId, domain, lines, mode } = settings;
  if (!(await keepDnsCredential(tx.sql, credentialId!))) fail('DNS_PROVIDER_NOT_FOUND');
  const { zone, provider } = (await dnsCredentialById(tx.sql, credentialId!))!;
  if (mode === 'off' && domain === '') return settings.allLabel;
  if (domain !== zone && !domain.endsWith(`.${zone}`)) fail('DNS_ZONE_MISMATCH', { zone });
  const supported = adapterKind(provider)?.capabilities.lines ?? [];
  const unsupported = lines.find(
    ({ resolutionLine }) => resolutionLine !== 'default' && !supported.includes(resolutionLine),
  );
  if (unsupported) fail('DNS_LINE_UNSUPPORTED', { line: unsupported.resolutionLine });
  if (mode === 'off') return settings.allLabel;
  await lockDnsZone(tx.sql, zone);
  const others = await neighbourBindings(tx.sql, { clusterId, zone, domain });
  const taken = new Set(others.flatMap((other) => [other.allLabel, ...other.lines.map(({ name }) => name)]));
  const conflict = lines.find(({ name }) => taken.has(name));
  if (conflict) fail('DNS_BINDING_CONFLICT', { name: `${conflict.name}.${domain}` });
  if (!taken.has(settings.allLabel)) return settings.allLabel;
  for (let number = 2; ; number++) if (!taken.has(`all-${number}`)) return `all-${number}`;
}
