import { randomUUID } from 'node:crypto';
import { badField, fail } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import {
  type AlertSilence,
  MAX_SILENCES,
  type alertSilences as silences,
} from '../../contract/resources/alert-silences.ts';
import {
  type AlertSilenceRow,
  alertSilences,
  countAlertSilences,
  endAlertSilence,
  insertAlertSilence,
  resourceName,
} from '../../models/alerts/alert-silence.ts';
import { recordAudit } from '../../models/audit/audit-entry.ts';
import type { Call } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { write } from '../../runtime/write.ts';
import { pageIn } from './page-in.ts';

export async function listSilences(
  { pools }: Runtime,
  input: Input<typeof silences.list>,
): Promise<Output<typeof silences.list>> {
  return pageIn((await alertSilences(pools.api)).map(present), input);
}

/** Throws BAD_REQUEST where it would match every alert, ALERT_SILENCE_LIMIT. */
export async function createSilence(
  runtime: Runtime,
  { kinds = [], resourceId: of, reason, durationSeconds }: Input<typeof silences.create>,
  call: Call,
): Promise<AlertSilence> {
  const resourceId = of ?? null;
  if (kinds.length === 0 && resourceId === null) badField('/kinds', 'minItems', { limit: 1 });
  return write(runtime, call, { status: 201 }, async (tx) => {
    if ((await countAlertSilences(tx.sql)) >= MAX_SILENCES) fail('ALERT_SILENCE_LIMIT', { limit: MAX_SILENCES });
    const row = {
      id: randomUUID(),
      kinds: [...kinds],
      resourceId,
      resourceName: resourceId === null ? '' : await resourceName(tx.sql, resourceId),
      reason: reason.trim(),
      createdBy: call.actor.name,
      createdAt: tx.now,
      endsAt: new Date(tx.now.getTime() + durationSeconds * 1000),
    };
    await insertAlertSilence(tx.sql, row);
    await recordAudit(tx, 'alert.silence_create', targetOf(row), { kinds, resourceId, durationSeconds });
    return present(row);
  });
}

/** Throws ALERT_SILENCE_NOT_FOUND. */
export async function endSilence(
  runtime: Runtime,
  { id }: Input<typeof silences.delete>,
  call: Call,
): Promise<Output<typeof silences.delete>> {
  return write(runtime, call, {}, async (tx) => {
    const { reason } = (await endAlertSilence(tx.sql, id)) ?? fail('ALERT_SILENCE_NOT_FOUND');
    await recordAudit(tx, 'alert.silence_delete', targetOf({ id, reason }), {});
    return {};
  });
}

function present({ createdAt, endsAt, ...row }: AlertSilenceRow): AlertSilence {
  return { ...row, createdAt: createdAt.toISOString(), endsAt: endsAt.toISOString() };
}

function targetOf({ id, reason }: Pick<AlertSilenceRow, 'id' | 'reason'>): { type: string; id: string; name: string } {
  return { type: 'alert_silence', id, name: reason };
}
