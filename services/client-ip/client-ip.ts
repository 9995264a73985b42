import { isDeepStrictEqual } from 'node:util';
import { badField, fail } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import type { clientIp } from '../../contract/resources/client-ip.ts';
import { normaliseCidrs, parseCidr } from '../../contract/scalars/cidr.ts';
import type { Call } from '../../mixins/call.ts';
import type { Runtime } from '../../mixins/runtime.ts';
import { write } from '../../mixins/write.ts';
import { recordAudit } from '../../models/audit-entry.ts';
import { nodesLacking, readClusterSettings, writeClientIp } from '../../models/cluster-settings.ts';
import type { ClientIp } from '../../models/entries/client-ip.ts';
import { publish } from '../../models/publish.ts';

type GivenSettings = Input<typeof clientIp.set>['settings'];

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
  header: ['trustedCidrs', 'header'],
} as const;

/** Settings as saved: the fields of the mode, normalised. Throws BAD_REQUEST. */
export function normaliseClientIp(given: GivenSettings): ClientIp {
  const allowed: readonly string[] = FIELDS_OF_MODE[given.mode];
  for (const field of Object.keys(given)) {
    if (field !== 'mode' && !allowed.includes(field)) badField(`/settings/${field}`, 'mode', { mode: given.mode });
  }
  if (given.mode === 'direct') return { mode: 'direct', dropForwardedFor: given.dropForwardedFor ?? false };
  if (given.mode === 'proxy_protocol') return { mode: 'proxy_protocol' };
  return { mode: 'header', trustedCidrs: trustedCidrs(given.trustedCidrs), header: trustedHeader(given.header) };
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

/** Throws CLUSTER_NOT_FOUND. */
export async function getClientIp(
  { pools }: Runtime,
  { clusterId }: Input<typeof clientIp.get>,
): Promise<Output<typeof clientIp.get>> {
  const { clientIp: settings } = (await readClusterSettings(pools.api, clusterId)) ?? fail('CLUSTER_NOT_FOUND');
  return { settings, unsupportedNodes: await nodesLacking(pools.api, clusterId, 'client-ip-v1') };
}

/** Saves and publishes the settings; equal ones change nothing. Throws CLUSTER_NOT_FOUND, BAD_REQUEST. */
export async function setClientIp(
  runtime: Runtime,
  input: Input<typeof clientIp.set>,
  call: Call,
): Promise<Output<typeof clientIp.set>> {
  const { clusterId } = input;
  const settings = normaliseClientIp(input.settings);
  return write(runtime, call, { clusterId }, async (tx) => {
    const before = (await readClusterSettings(tx.sql, clusterId, { lock: true })) ?? fail('CLUSTER_NOT_FOUND');
    const unsupportedNodes = await nodesLacking(tx.sql, clusterId, 'client-ip-v1');
    if (isDeepStrictEqual(before.clientIp, settings)) return { settings, unsupportedNodes, revision: null };
    await writeClientIp(tx.sql, clusterId, settings);
    await recordAudit(
      tx,
      'cluster.client_ip_update',
      { type: 'cluster', id: clusterId, name: before.name },
      { before: before.clientIp, after: settings },
    );
    const revision = await publish(tx, {
      clusterId,
      entries: [{ kind: 'client-ip', id: '' }],
      reason: 'client_ip_updated',
    });
    return { settings, unsupportedNodes, revision };
  });
}
