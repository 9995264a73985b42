import { randomUUID } from 'node:crypto';
import { badField, fail } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import type { AlertSubscription, alertSubscriptions as subscriptions } from '../../contract/resources/alerts.ts';
import { alertChannelById } from '../../models/alerts/alert-channel.ts';
import {
  type AlertSubscriptionRow,
  alertSubscriptionById,
  alertSubscriptions,
  deleteSubscription,
  insertSubscription,
  updateSubscription,
} from '../../models/alerts/alert-subscription.ts';
import { recordAudit } from '../../models/audit/audit-entry.ts';
import { assertUpdatedAt, nextUpdatedAt } from '../../models/db/updated-at.ts';
import { holdSites } from '../../models/sites/hold-sites.ts';
import type { Call } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { type Tx, write } from '../../runtime/write.ts';
import { pageIn } from './page-in.ts';

export async function listSubscriptions(
  { pools }: Runtime,
  input: Input<typeof subscriptions.list>,
): Promise<Output<typeof subscriptions.list>> {
  const rows = await alertSubscriptions(pools.api);
  return pageIn(rows.map(present), input);
}

/** Throws BAD_REQUEST, ALERT_CHANNEL_NOT_FOUND, ALERT_SUBSCRIPTION_EXISTS, SITE_NOT_FOUND. */
export async function createSubscription(
  runtime: Runtime,
  { channelId, ...input }: Input<typeof subscriptions.create>,
  call: Call,
): Promise<AlertSubscription> {
  const given = givenOf(input);
  return write(runtime, call, { status: 201 }, async (tx) => {
    const channel = (await alertChannelById(tx.sql, channelId, { lock: true })) ?? fail('ALERT_CHANNEL_NOT_FOUND');
    await assertSites(tx, given.siteIds);
    const id = randomUUID();
    if (!(await insertSubscription(tx.sql, { id, channelId, ...given }, tx.now))) fail('ALERT_SUBSCRIPTION_EXISTS');
    await recordAudit(tx, 'alert.subscribe', { type: 'alert_subscription', id, name: channel.name }, said(given));
    return present((await alertSubscriptionById(tx.sql, id))!);
  });
}

/** Throws BAD_REQUEST, ALERT_SUBSCRIPTION_NOT_FOUND, UPDATED_AT_MISMATCH, SITE_NOT_FOUND. */
export async function changeSubscription(
  runtime: Runtime,
  { id, expectedUpdatedAt, ...input }: Input<typeof subscriptions.update>,
  call: Call,
): Promise<AlertSubscription> {
  const given = givenOf(input);
  return write(runtime, call, {}, async (tx) => {
    const row = (await alertSubscriptionById(tx.sql, id, { lock: true })) ?? fail('ALERT_SUBSCRIPTION_NOT_FOUND');
    assertUpdatedAt(expectedUpdatedAt, row.updatedAt);
    await assertSites(tx, given.siteIds);
    await updateSubscription(tx.sql, { id, ...given }, nextUpdatedAt(row.updatedAt, tx.now));
    await recordAudit(tx, 'alert.subscription_update', targetOf(row), said(given));
    return present((await alertSubscriptionById(tx.sql, id))!);
  });
}

/** Throws ALERT_SUBSCRIPTION_NOT_FOUND. */
export async function endSubscription(
  runtime: Runtime,
  { id }: Input<typeof subscriptions.delete>,
  call: Call,
): Promise<Output<typeof subscriptions.delete>> {
  return write(runtime, call, {}, async (tx) => {
    const row = (await alertSubscriptionById(tx.sql, id, { lock: true })) ?? fail('ALERT_SUBSCRIPTION_NOT_FOUND');
    await deleteSubscription(tx.sql, id);
    await recordAudit(tx, 'alert.unsubscribe', targetOf(row), {});
    return {};
  });
}

type Given = Pick<AlertSubscriptionRow, 'kinds' | 'enabled' | 'allSites' | 'siteIds'>;

/** Throws BAD_REQUEST for all sites and some, or none. */
function givenOf({
  kinds,
  enabled = true,
  allSites = false,
  siteIds = [],
}: Partial<Given> & Pick<Given, 'kinds'>): Given {
  if (allSites && siteIds.length > 0) badField('/siteIds', 'maxItems', { limit: 0 });
  if (!allSites && siteIds.length === 0) badField('/siteIds', 'minItems', { limit: 1 });
  return { kinds, enabled, allSites, siteIds };
}

async function assertSites({ sql }: Tx, siteIds: readonly string[]): Promise<void> {
  if (siteIds.length > 0 && !(await holdSites(sql, siteIds))) fail('SITE_NOT_FOUND');
}

const said = ({ siteIds, ...given }: Given) => ({ ...given, sites: siteIds.length });

function present({ createdAt, updatedAt, ...row }: AlertSubscriptionRow): AlertSubscription {
  return { ...row, createdAt: createdAt.toISOString(), updatedAt: updatedAt.toISOString() };
}

function targetOf({ id, channelName }: AlertSubscriptionRow): { type: string; id: string; name: string } {
  return { type: 'alert_subscription', id, name: channelName };
}
