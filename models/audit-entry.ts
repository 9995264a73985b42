import type { Tx } from '../mixins/write.ts';

export interface AuditTarget {
  type: string;
  id: string | null;
  /** As of now; it outlives the target. */
  name: string | null;
}

/** Writes an audit entry in the change's transaction. `metadata` holds parameters, never secrets. */
export async function recordAudit(
  tx: Tx,
  action: string,
  target: AuditTarget | null,
  metadata: Record<string, unknown> = {},
): Promise<void> {
  const { actor, ip, userAgent } = tx.call;
  await tx.sql('audit_entry').insert({
    occurred_at: tx.now,
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
  });
}
