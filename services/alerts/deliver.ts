// Makes the messages of alerts that began or ended, and sends those that are due.
import { noteChannelResult } from '../../models/alerts/alert-channel.ts';
import {
  announceAlerts,
  dropDelivery,
  type LeasedDelivery,
  leaseDeliveries,
  noteAttempt,
} from '../../models/alerts/alert-delivery.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { openConfig } from './channels.ts';
import { messageOf } from './message.ts';
import { SendFailed } from './send-failed.ts';
import { sendMessage } from './senders/senders.ts';

/** Messages that one run sends, at most. */
const PER_RUN = 200;
/** None is started later than so long after the beginning of a run. */
const START_MS = 40_000;
const AT_ONCE = 8;

/** Harmless when two processes run it: each message is taken by one of them. */
export async function deliverAlerts(runtime: Runtime, signal: AbortSignal): Promise<void> {
  const { api } = runtime.pools;
  const until = performance.now() + START_MS;
  let more = true;
  while (more && !signal.aborted) more = await announceAlerts(api);
  let left = PER_RUN;
  while (left > 0 && !signal.aborted && performance.now() < until) {
    const leased = await leaseDeliveries(api, Math.min(left, AT_ONCE));
    if (leased.length === 0) return;
    left -= leased.length;
    await Promise.all(leased.map((delivery) => deliver(runtime, delivery)));
  }
}

async function deliver(runtime: Runtime, delivery: LeasedDelivery): Promise<void> {
  const { pools, env, sealer, log } = runtime;
  const { id, current, channelId, config } = delivery;
  if (!current) return dropDelivery(pools.api, id);
  let reason: SendFailed['reason'] | null = null;
  try {
    await sendMessage(runtime, openConfig(sealer, { id: channelId, config }), messageOf(delivery, env.publicUrl));
  } catch (err) {
    // What is no failure of sending is ours. It counts as an attempt, so that it does not come back for ever.
    if (!(err instanceof SendFailed)) log.error({ err, deliveryId: id, channelId }, 'alert message failed');
    reason = err instanceof SendFailed ? err.reason : 'unreachable';
  }
  await noteAttempt(pools.api, id, reason);
  await noteChannelResult(pools.api, channelId, reason);
}
