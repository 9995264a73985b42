// Channels. What they hold leaves this folder sealed alone.
import { randomUUID } from 'node:crypto';
import { fail } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import {
  type AlertChannel,
  type availableAlertChannels,
  type ChannelConfig,
  type alertChannels as channels,
  MAX_CHANNELS,
} from '../../contract/resources/alerts.ts';
import {
  type AlertChannelRow,
  alertChannelById,
  alertChannels,
  channelConfigPlace,
  countAlertChannels,
  deleteAlertChannel,
  insertAlertChannel,
  noteChannelResult,
  updateAlertChannel,
} from '../../models/alerts/alert-channel.ts';
import { alertSubscriptions } from '../../models/alerts/alert-subscription.ts';
import { recordAudit } from '../../models/audit/audit-entry.ts';
import { assertUpdatedAt, nextUpdatedAt } from '../../models/db/updated-at.ts';
import type { Call } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import type { Sealer } from '../../runtime/sealer.ts';
import { write } from '../../runtime/write.ts';
import { testMessage } from './message.ts';
import { pageIn } from './page-in.ts';
import { SendFailed } from './send-failed.ts';
import { checkConfig, sendMessage } from './senders/senders.ts';

export async function listChannels(
  { pools }: Runtime,
  input: Input<typeof channels.list>,
): Promise<Output<typeof channels.list>> {
  const rows = await alertChannels(pools.api);
  return pageIn(rows.map(present), input);
}

/** Enabled channels without a subscription. */
export async function listAvailableChannels(
  { pools }: Runtime,
  input: Input<typeof availableAlertChannels.list>,
): Promise<Output<typeof availableAlertChannels.list>> {
  const [rows, taken] = await Promise.all([alertChannels(pools.api), alertSubscriptions(pools.api)]);
  const has = new Set(taken.map(({ channelId }) => channelId));
  const items = rows
    .filter(({ id, enabled }) => enabled && !has.has(id))
    .map(({ id, name, kind }) => ({ id, name, kind }));
  return pageIn(items, input);
}

/** Throws BAD_REQUEST, ALERT_CHANNEL_LIMIT. */
export async function createChannel(
  runtime: Runtime,
  input: Input<typeof channels.create>,
  call: Call,
): Promise<AlertChannel> {
  const { config } = input;
  checkConfig(config);
  return write(runtime, call, { status: 201 }, async (tx) => {
    if ((await countAlertChannels(tx.sql)) >= MAX_CHANNELS) fail('ALERT_CHANNEL_LIMIT', { limit: MAX_CHANNELS });
    const id = randomUUID();
    const given = givenOf(input);
    const sealed = sealConfig(runtime.sealer, id, config);
    await insertAlertChannel(tx.sql, { id, ...given, kind: config.kind, config: sealed }, tx.now);
    await recordAudit(tx, 'alert.channel_create', targetOf({ id, ...given }), { ...given, kind: config.kind });
    return present((await alertChannelById(tx.sql, id))!);
  });
}

/** Throws BAD_REQUEST, ALERT_CHANNEL_NOT_FOUND, UPDATED_AT_MISMATCH. */
export async function updateChannel(
  runtime: Runtime,
  input: Input<typeof channels.update>,
  call: Call,
): Promise<AlertChannel> {
  const { id, config, expectedUpdatedAt } = input;
  if (config) checkConfig(config);
  return write(runtime, call, {}, async (tx) => {
    const row = (await alertChannelById(tx.sql, id, { lock: true })) ?? fail('ALERT_CHANNEL_NOT_FOUND');
    assertUpdatedAt(expectedUpdatedAt, row.updatedAt);
    const given = givenOf(input);
    const kind = config?.kind ?? row.kind;
    const sealed = config ? sealConfig(runtime.sealer, id, config) : row.config;
    await updateAlertChannel(tx.sql, { id, ...given, kind, config: sealed }, nextUpdatedAt(row.updatedAt, tx.now));
    const said = { ...given, kind, configChanged: config !== undefined };
    await recordAudit(tx, 'alert.channel_update', targetOf({ id, ...given }), said);
    return present((await alertChannelById(tx.sql, id))!);
  });
}

/** Throws ALERT_CHANNEL_NOT_FOUND. */
export async function deleteChannel(
  runtime: Runtime,
  { id }: Input<typeof channels.delete>,
  call: Call,
): Promise<Output<typeof channels.delete>> {
  return write(runtime, call, {}, async (tx) => {
    const row = (await alertChannelById(tx.sql, id, { lock: true })) ?? fail('ALERT_CHANNEL_NOT_FOUND');
    await deleteAlertChannel(tx.sql, id);
    await recordAudit(tx, 'alert.channel_delete', targetOf(row), { kind: row.kind });
    return {};
  });
}

/** Sends a message. Throws ALERT_CHANNEL_NOT_FOUND, ALERT_SMTP_NOT_CONFIGURED, ALERT_SEND_FAILED. */
export async function testChannel(
  runtime: Runtime,
  { id }: Input<typeof channels.test>,
  call: Call,
): Promise<Output<typeof channels.test>> {
  const { pools, env, sealer } = runtime;
  const row = (await alertChannelById(pools.api, id)) ?? fail('ALERT_CHANNEL_NOT_FOUND');
  const message = testMessage(randomUUID(), row.locale, env.publicUrl, new Date());
  try {
    await sendMessage(runtime, openConfig(sealer, row), message);
  } catch (error) {
    if (!(error instanceof SendFailed)) throw error;
    await noteChannelResult(pools.api, id, error.reason);
    if (error.reason === 'not_configured') fail('ALERT_SMTP_NOT_CONFIGURED');
    fail('ALERT_SEND_FAILED', { reason: error.reason });
  }
  return write(runtime, call, {}, async (tx) => {
    await noteChannelResult(tx.sql, id, null);
    await recordAudit(tx, 'alert.channel_test', targetOf(row), { kind: row.kind });
    return {};
  });
}

export function openConfig(sealer: Sealer, { id, config }: { id: string; config: string }): ChannelConfig {
  return JSON.parse(sealer.open(config, channelConfigPlace(id)).toString()) as ChannelConfig;
}

function sealConfig(sealer: Sealer, id: string, config: ChannelConfig): string {
  return sealer.seal(Buffer.from(JSON.stringify(config)), channelConfigPlace(id));
}

type Given = Pick<Input<typeof channels.create>, 'name' | 'enabled' | 'platform' | 'locale'>;

function givenOf({ name, enabled = true, platform = false, locale = 'en' }: Given) {
  return { name: name.trim(), enabled, platform, locale };
}

/** Without its configuration. */
function present({ config: _config, lastSentAt, createdAt, updatedAt, ...row }: AlertChannelRow): AlertChannel {
  return {
    ...row,
    lastSentAt: lastSentAt?.toISOString() ?? null,
    createdAt: createdAt.toISOString(),
    updatedAt: updatedAt.toISOString(),
  };
}

function targetOf({ id, name }: { id: string; name: string }): { type: string; id: string; name: string } {
  return { type: 'alert_channel', id, name };
}
