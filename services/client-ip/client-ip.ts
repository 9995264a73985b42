import { badField } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import type { clientIp } from '../../contract/resources/client-ip.ts';
import { normaliseCidrs, parseCidr } from '../../contract/scalars/cidr.ts';
import { CLIENT_IP, type ClientIp } from '../../models/clusters/client-ip.entry.ts';
import { nodesBelievingAnyPeer } from '../../models/clusters/cluster-settings.ts';
import { type ClusterSetting, clusterSettingState, saveClusterSetting } from '../../pipeline/cluster-setting.ts';
import type { Call } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';

type GivenSettings = Input<typeof clientIp.set>['settings'];
type Warnings = Output<typeof clientIp.get>['warnings'];

/** Headers that mean something else, or belong to one connection only. */
const REFUSED_HEADERS = new Set([
  'authorization',
  'connection',
  'cookie',
  'host',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'x-request-id',
]);
const HEADER = /^[a-z0-9-]{1,64}$/;
/** The field that each mode takes beside itself. */
const FIELDS_OF_MODE = {
  direct: ['dropForwardedFor'],
  proxy_protocol: [],
  header: ['trustedCidrs', 'header', 'trustForwardedProto'],
} as const;

/** Settings as saved: the fields of the mode, normalised. Throws BAD_REQUEST. */
export function normaliseClientIp(given: GivenSettings): ClientIp {
  const allowed: readonly string[] = FIELDS_OF_MODE[given.mode];
  for (const field of Object.keys(given)) {
    if (field !== 'mode' && !allowed.includes(field)) badField(`/settings/${field}`, 'mode', { mode: given.mode });
  }
  if (given.mode === 'direct') return { mode: 'direct', dropForwardedFor: given.dropForwardedFor ?? false };
  if (given.mode === 'proxy_protocol') return { mode: 'proxy_protocol' };
  return {
    mode: 'header',
    trustedCidrs: trustedCidrs(given.trustedCidrs),
    header: trustedHeader(given.header),
    ...(given.trustForwardedProto === false ? { trustForwardedProto: false } : {}),
  };
}

function trustedCidrs(texts: readonly string[] | undefined): string[] {
  if (texts === undefined) badField('/settings/trustedCidrs', 'required');
  if (texts.length === 0) badField('/settings/trustedCidrs', 'minItems', { limit: 1 });
  const { cidrs, invalid } = normaliseCidrs(texts);
  if (invalid !== null) badField(`/settings/trustedCidrs/${invalid}`, 'cidr');
  // A peer's address never has this form here; whoever writes it means something else.
  const mapped = texts.findIndex((text) => text.includes(':') && parseCidr(text)?.family === 4);
  if (mapped >= 0) badField(`/settings/trustedCidrs/${mapped}`, 'ipv4Mapped');
  return cidrs;
}

function trustedHeader(header: string | undefined): string {
  if (header === undefined) badField('/settings/header', 'required');
  if (!HEADER.test(header)) badField('/settings/header', 'pattern', { pattern: HEADER.source });
  if (REFUSED_HEADERS.has(header) || header.startsWith('x-svc-')) badField('/settings/header', 'refusedHeader');
  return header;
}

const SETTING: ClusterSetting<ClientIp> = {
  setting: CLIENT_IP,
  kind: 'client-ip',
  capability: 'client-ip-v1',
  audit: 'cluster.client_ip_update',
  reason: 'client_ip_updated',
};

/** Throws CLUSTER_NOT_FOUND. */
export async function getClientIp(
  runtime: Runtime,
  { clusterId }: Input<typeof clientIp.get>,
): Promise<Output<typeof clientIp.get>> {
  const state = await clusterSettingState(runtime, SETTING, clusterId);
  return { ...state, warnings: await warningsOf(runtime.pools.api, clusterId, state.settings) };
}

/** Saves and publishes the settings; equal ones change nothing. Throws CLUSTER_NOT_FOUND, BAD_REQUEST. */
export async function setClientIp(
  runtime: Runtime,
  { clusterId, settings }: Input<typeof clientIp.set>,
  call: Call,
): Promise<Output<typeof clientIp.set>> {
  const given = normaliseClientIp(settings);
  return saveClusterSetting(runtime, call, SETTING, {
    clusterId,
    settings: given,
    present: async (saved, sql) => ({ ...saved, warnings: await warningsOf(sql, clusterId, given) }),
  });
}

/** What the settings do not do on some nodes, though it seems so. */
async function warningsOf(
  sql: Parameters<typeof nodesBelievingAnyPeer>[0],
  clusterId: string,
  { mode }: ClientIp,
): Promise<Warnings> {
  const nodes = mode === 'proxy_protocol' ? await nodesBelievingAnyPeer(sql, clusterId) : [];
  return nodes.length > 0 ? [{ kind: 'proxy_peers_unset', nodes }] : [];
}
