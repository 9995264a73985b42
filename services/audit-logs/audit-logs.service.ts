import type { ServiceSchema } from 'moleculer';
import { badField } from '../../contract/errors.ts';
import { pageOf } from '../../contract/page.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import { auditLogs, auditRetention } from '../../contract/resources/audit-logs.ts';
import { contractService, implement } from '../../mixins/contract-service.ts';
import { recordAudit } from '../../models/audit/audit-entry.ts';
import {
  AUDIT_RETENTION,
  type AuditRow,
  auditFacets,
  auditPage,
  readAuditDays,
  targetsThere,
  writeAuditDays,
} from '../../models/audit/audit-log.ts';
import { lockSetting, settingTarget } from '../../models/db/setting.ts';
import type { Call } from '../../runtime/call.ts';
import type { Role } from '../../runtime/env.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { write } from '../../runtime/write.ts';

export const roles: Role[] = ['app'];

type Page = Output<typeof auditLogs.list>;

export default (runtime: Runtime): ServiceSchema => ({
  name: 'audit-logs',
  mixins: [
    contractService([
      implement(auditLogs.list, (input) => listAuditLogs(runtime, input)),
      implement(auditLogs.facets, () => readFacets(runtime)),
      implement(auditRetention.get, async () => ({ days: await readAuditDays(runtime.pools.api) })),
      implement(auditRetention.set, (input, call) => setRetention(runtime, input, call)),
    ]),
  ],
});

async function listAuditLogs({ pools }: Runtime, input: Input<typeof auditLogs.list>): Promise<Page> {
  const [from, to] = [instant('/from', input.from), instant('/to', input.to)];
  if (from && to && from > to) badField('/to', 'minimum', { from: input.from });
  const { limit, offset } = pageOf(input);
  const { rows, total } = await auditPage(pools.api, { ...input, from, to }, limit, offset);
  const there = await targetsThere(pools.api, rows);
  return { items: rows.map((row) => ({ ...present(row), targetExists: there(row) })), total };
}

/** PostgreSQL reads fewer spellings of a time than the contract accepts: displacements beyond 16 hours, leap seconds. */
function instant(path: string, text: string | undefined): Date | undefined {
  if (text === undefined) return undefined;
  const time = new Date(text);
  return Number.isNaN(time.getTime()) ? badField(path, 'format', { format: 'date-time' }) : time;
}

function present(row: AuditRow): Omit<Page['items'][number], 'targetExists'> {
  return {
    id: row.id,
    occurredAt: row.occurred_at.toISOString(),
    actorType: row.actor_type,
    actorId: row.actor_id,
    actorName: row.actor_name,
    ip: row.ip,
    userAgent: row.user_agent,
    action: row.action,
    targetType: row.target_type,
    targetId: row.target_id,
    targetName: row.target_name,
    metadata: row.metadata,
  };
}

async function readFacets({ pools }: Runtime): Promise<Output<typeof auditLogs.facets>> {
  const { action, target_type, actor_type } = await auditFacets(pools.api);
  return { actions: action, targetTypes: target_type, actorTypes: actor_type as AuditRow['actor_type'][] };
}

async function setRetention(
  runtime: Runtime,
  { days }: Input<typeof auditRetention.set>,
  call: Call,
): Promise<Output<typeof auditRetention.set>> {
  return write(runtime, call, {}, async (tx) => {
    await lockSetting(tx.sql, AUDIT_RETENTION);
    const before = await readAuditDays(tx.sql);
    if (before !== days) {
      await writeAuditDays(tx.sql, days, tx.now);
      await recordAudit(tx, 'system.audit_retention_update', settingTarget(AUDIT_RETENTION), { before, after: days });
    }
    return { days };
  });
}
