import type { Tx } from '../../runtime/write.ts';
import { hint } from '../db/live-hint.ts';

/** Type of the target of every change of the console's own settings; its id is the group. */
export const SETTING_TARGET = 'system_setting';

export interface AuditTarget {
  type: string;
  id: string | null;
  /** As of now; it outlives the target. */
  name: string | null;
}

/** What is to be said of one change. `metadata` holds parameters, never secrets. */
export interface AuditRecord {
  action: string;
  target: AuditTarget | null;
  metadata?: Record<string, unknown>;
}

/** Writes an audit entry in the change's transaction. */
export async function recordAudit(
  tx: Tx,
  action: string,
  target: AuditTarget | null,
  metadata: Record<string, unknown> = {},
): Promise<void> {
  await recordAudits([[tx, { action, target, metadata }]]);
}

/** As {@link recordAudit} for each of several calls that share a transaction. */
export async function recordAudits(records: readonly [tx: Tx, record: AuditRecord][]): Promise<void> {
  const [first] = records;
  if (first) await first[0].sql.raw('select audit_record(?, ?)', auditArguments(records) as never);
}

/**
 * What the function audit_record of the database is given, for whoever has another function call it: with it the entries
 * are recorded.
 */
export function auditArguments(records: readonly [tx: Tx, record: AuditRecord][]): [hints: string[], entries: string] {
  const hints = [...new Set(records.flatMap(([, record]) => hintOf(record)))];
  if (hints.length > 0) for (const [tx] of records) tx.wake = true;
  return [hints, JSON.stringify(records.map(([each, record]) => rowOf(each, record)))];
}

/** What the Web UI is told of the change; bans have their feed. */
function hintOf({ action, target }: AuditRecord): string[] {
  if (target?.type === 'ban') return [];
  if (target?.id && target.type === 'site') return [hint('sites', target.id)];
  if (target?.id && target.type === 'node') return [hint('nodes', target.id)];
  const what = target === null || target.type === SETTING_TARGET ? action : target.type;
  return [hint('settings', what)];
}

function rowOf({ call, now }: Tx, { action, target, metadata = {} }: AuditRecord): Record<string, unknown> {
  const { actor, ip, userAgent } = call;
  return {
    occurred_at: now,
    actor_type: actor.type,
    actor_id: actor.id,
    actor_name: actor.name || null,
    ip,
    user_agent: userAgent?.slice(0, 512) ?? null,
    action,
    target_type: target?.type ?? null,
    target_id: target?.id ?? null,
    target_name: target?.name ?? null,
    metadata,
  };
}
