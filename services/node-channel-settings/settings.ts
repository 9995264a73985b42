import { badField } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import type { nodeChannelSettings } from '../../contract/resources/node-channel-settings.ts';
import { recordAudit } from '../../models/audit/audit-entry.ts';
import { settingTarget } from '../../models/db/setting.ts';
import {
  NODE_CHANNEL,
  type NodeChannelAddress,
  nodeChannelAddress,
  saveNodeChannelUrl,
} from '../../models/nodes/node-channel-setting.ts';
import type { Call } from '../../runtime/call.ts';
import { announceNodeAccess } from '../../runtime/node-access.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { write } from '../../runtime/write.ts';

type Settings = Output<typeof nodeChannelSettings.get>;

function present({ url, effectiveUrl, source }: NodeChannelAddress): Settings {
  return { url, effectiveUrl, source };
}

export async function getNodeChannelSettings(runtime: Runtime): Promise<Settings> {
  return present(await nodeChannelAddress(runtime.pools.api, runtime.env));
}

export async function setNodeChannelSettings(
  runtime: Runtime,
  input: Input<typeof nodeChannelSettings.set>,
  call: Call,
): Promise<Settings> {
  const url = input.url === '' ? '' : bareHttpsOrigin(input.url);
  const output = await write(runtime, call, {}, async (tx) => {
    const before = await nodeChannelAddress(tx.sql, runtime.env);
    if (before.url === url) return present(before);
    const address = await saveNodeChannelUrl(tx.sql, url, runtime.env);
    await recordAudit(tx, 'system.node_channel_update', settingTarget(NODE_CHANNEL), { url, before: before.url });
    return present(address);
  });
  announceNodeAccess(runtime);
  return output;
}

// A parser alone would let through what it quietly drops or repairs: tabs, backslashes, empty query or credentials.
const FORM = /^https:\/\/(\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(:[0-9]{1,5})?\/?$/i;

/** The origin of `https://host[:port]`; BAD_REQUEST for anything more or less. */
export function bareHttpsOrigin(text: string): string {
  if (!FORM.test(text) || !URL.canParse(text)) badField('/url', 'format', { format: 'https-origin' });
  const { origin, port, hostname } = new URL(text);
  if (port === '0' || hostname === '') badField('/url', 'format', { format: 'https-origin' });
  return origin;
}
