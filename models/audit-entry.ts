import type { Tx } from '../runtime/write.ts';
import { hint, leaveHints } from './live-hint.ts';

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
  if (!first) return;
  const [tx] = first;
  await tx.sql('audit_entry').insert(records.map(([each, record]) => rowOf(each, record)));
  const hints = records.flatMap(([, record]) => hintOf(record));
  if (hints.length === 0) return;
  await leaveHints(tx.sql, hints);
  tx.wake = true;
}

/** What the Web UI is told of the change; bans have their feed. */
function hintOf({ action, target }: AuditRecord): string[] {
  if (target?.type === 'ban') return [];
  if (target?.id && target.type === 'site') return [hint('sites', target.id)];
  if (target?.id && target.type === 'node') return [hint('nodes', target.id)];
  return [hint('settings', target?.type ?? action)];
}

function rowOf({ call, now }: Tx, { action, target, metadata = {} }: AuditRecord): Record<string, unknown> {
  const { actor, ip, userAgent } = call;
  return {
    occurred_at: now,
    actor_type: actor.type,
    actor_id: actor.id,
    actor_name: actor.name,
    ip,
    user_agent: userAgent?.slice(0, 512) ?? null,
    action,
    target_type: target?.type ?? null,
    target_id: target?.id ?? null,
    target_name: target?.name ?? null,
    metadata: JSON.stringify(metadata),
  };
}
