import type { Input, Output } from '../../contract/procedure.ts';
import { type AlertEvent, type alertEvents, MAX_ALERT_EVENTS } from '../../contract/resources/alerts.ts';
import { type AlertEventRow, alertEventRows } from '../../models/alerts/alert-delivery.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { textOf } from './message.ts';
import { pageIn } from './page-in.ts';

export async function listEvents(
  { pools }: Runtime,
  input: Input<typeof alertEvents.list>,
): Promise<Output<typeof alertEvents.list>> {
  const rows = await alertEventRows(pools.api, input.siteId, MAX_ALERT_EVENTS);
  return pageIn(rows.map(present), input);
}

function present({
  id,
  kind,
  facts,
  startedAt,
  resolvedAt,
  silencedAt,
  silenced,
  deliveries,
}: AlertEventRow): AlertEvent {
  const { siteId, name, resourceId, detail } = facts;
  return {
    id,
    kind,
    siteId,
    siteName: name,
    resourceId,
    text: textOf(kind, 'firing', facts, 'en'),
    detail,
    startedAt: startedAt.toISOString(),
    resolvedAt: resolvedAt?.toISOString() ?? null,
    silencedAt: silencedAt?.toISOString() ?? null,
    silenced,
    deliveries,
  };
}
