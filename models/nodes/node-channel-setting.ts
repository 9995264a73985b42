// Address of the node channel: the saved one, else the environment's, else the public host on port 8443.
import type { Knex } from 'knex';

export const NODE_CHANNEL = 'node_channel';
const SAVED_HOSTS = 32;
const DEFAULT_PORT = 8443;

export interface NodeChannelAddress {
  /** Saved origin, empty when none is. */
  url: string;
  effectiveUrl: string;
  source: 'setting' | 'environment' | 'default';
  /** Hosts of the last addresses saved, newest first: certificates keep naming them for nodes that know them. */
  savedHosts: string[];
}

interface Stored {
  url?: string;
  savedHosts?: string[];
}

export interface NodeChannelEnv {
  publicUrl: string;
  nodeApiUrl: string | null;
}

export async function nodeChannelAddress(sql: Knex, env: NodeChannelEnv): Promise<NodeChannelAddress> {
  const row = await sql('setting').where({ key: NODE_CHANNEL }).first('value');
  return toAddress((row?.value ?? {}) as Stored, env);
}

/** Saves an origin, or clears it with an empty one. */
export async function saveNodeChannelUrl(sql: Knex, url: string, env: NodeChannelEnv): Promise<NodeChannelAddress> {
  // The row is locked (or made) first, so that two saves cannot lose a host.
  await sql('setting').insert({ key: NODE_CHANNEL, value: '{}' }).onConflict('key').ignore();
  const row = await sql('setting').where({ key: NODE_CHANNEL }).forUpdate().first('value');
  const before = (row?.value ?? {}) as Stored;
  const hosts = url === '' ? [] : [new URL(url).hostname];
  const savedHosts = [...new Set([...hosts, ...(before.savedHosts ?? [])])].slice(0, SAVED_HOSTS);
  const stored: Stored = { url, savedHosts };
  await sql('setting')
    .where({ key: NODE_CHANNEL })
    .update({ value: JSON.stringify(stored), updated_at: sql.fn.now() });
  return toAddress(stored, env);
}

export function toAddress(stored: Stored, env: NodeChannelEnv): NodeChannelAddress {
  const url = stored.url ?? '';
  const savedHosts = stored.savedHosts ?? [];
  if (url !== '') return { url, effectiveUrl: url, source: 'setting', savedHosts };
  if (env.nodeApiUrl !== null) return { url, effectiveUrl: env.nodeApiUrl, source: 'environment', savedHosts };
  const effectiveUrl = `https://${new URL(env.publicUrl).hostname}:${DEFAULT_PORT}`;
  return { url, effectiveUrl, source: 'default', savedHosts };
}
