// A row of the database -> the node of the contract.
import type { Output } from '../../contract/procedure.ts';
import type { nodes } from '../../contract/resources/nodes.ts';
import { schedulingAddresses, schedulingLevel } from '../../mixins/dns/targets.ts';
import type { NodeRow } from '../../models/nodes/node.ts';

type NodeOutput = Output<typeof nodes.get>;

export function presentNode(row: NodeRow): NodeOutput {
  const info = row.info ?? {};
  const text = (name: string): string => (typeof info[name] === 'string' ? info[name] : '');
  const failedEntries = (row.failed ?? []).map(({ kind, id, running, reason }) => ({ kind, id, running, reason }));
  const reported = row.epoch !== null;
  const addresses = schedulingAddresses(row);
  return {
    id: row.id,
    name: row.name,
    clusterId: row.cluster_id,
    clusterName: row.cluster_name,
    nodeGroupId: row.node_group_id,
    nodeGroupName: row.node_group_name,
    regionName: row.region_name,
    status: row.status,
    online: row.online,
    lastSeenAt: row.last_seen_at?.toISOString() ?? null,
    enrolledAt: row.enrolled_at.toISOString(),
    updatedAt: row.updated_at.toISOString(),
    hostname: text('hostname'),
    agentVersion: text('agentVersion'),
    engine: text('engine'),
    engineVersion: text('engineVersion'),
    os: text('os'),
    arch: text('arch'),
    ipAddresses: Array.isArray(info.ipAddresses) ? (info.ipAddresses as string[]) : [],
    remoteAddress: row.remote_address,
    schedulingAddresses: addresses,
    schedulingLevel: schedulingLevel(addresses) ?? 0,
    dnsIssue: addresses.length === 0 ? 'no_public_address' : null,
    supportedFeatures: row.features ?? [],
    upgradeRequired: (row.missing_features ?? []).length > 0,
    missingFeatures: row.missing_features ?? [],
    certFingerprint: row.certificate_fingerprint,
    certNotAfter: row.certificate_not_after?.toISOString() ?? null,
    authError: row.auth_error,
    targetRevision: row.target_revision ?? '0',
    appliedRevision: reported && row.revision !== '0' ? row.revision : null,
    appliedContentHash: reported && row.set_hash ? row.set_hash.toString('hex') : null,
    applyState: applyState(row, failedEntries.length),
    applyMessage: row.message ?? '',
    failedEntries,
    dataPlaneHealthy: row.data_plane_healthy ?? false,
    banStatus: row.ban_status as NodeOutput['banStatus'],
    metrics: row.metrics as NodeOutput['metrics'],
    cache: { maxSizeGb: row.cache_max_size_gb, usage: row.cache_usage as NodeOutput['cache']['usage'] },
    geoip: (info.geoip ?? null) as NodeOutput['geoip'],
  };
}

/** Failed: an entry could not be put to work, or the node says why it cannot move on. */
function applyState(row: NodeRow, failedEntries: number): NodeOutput['applyState'] {
  if (failedEntries > 0) return 'failed';
  if (row.epoch === row.target_epoch && row.revision === row.target_revision) return 'applied';
  return row.message ? 'failed' : 'applying';
}
