// What was decided for the names of a cluster: settings and addresses of that moment, and what became of it.
import type { Knex } from 'knex';
import type { DnsDifference, DnsProblem, DnsReason, DnsStatus } from '../../contract/resources/cluster-dns.ts';
import type { ResolutionLine } from '../../contract/scalars/resolution-line.ts';
import type { Actor } from '../../runtime/call.ts';
import type { DnsSettings } from './binding.ts';

/** Revisions that are kept, beside those in use. */
const KEPT = 200;

/** Addresses of one name, type and line. */
export interface AddressSet {
  name: string;
  type: 'A' | 'AAAA';
  line: ResolutionLine;
  values: string[];
  /** The line that the name is of; null: it is that of all lines. */
  ofLine: string | null;
  /** Backup groups answer. */
  switched: boolean;
}

export interface DnsRevisionRow {
  clusterId: string;
  number: number;
  status: DnsStatus;
  reason: DnsReason;
  reasonParams: Record<string, unknown>;
  actor: Actor;
  binding: DnsSettings;
  sets: AddressSet[];
  difference: { items: DnsDifference[]; total: number };
  removed: number;
  previous: number;
  problem: DnsProblem | null;
  createdAt: Date;
  appliedAt: Date | null;
}

export type NewDnsRevision = Omit<DnsRevisionRow, 'number' | 'problem' | 'createdAt' | 'appliedAt'>;

const COLUMNS = `cluster_id as "clusterId", number::int, status, reason, reason_params as "reasonParams", actor, binding,
  sets, difference, removed, previous, problem, created_at as "createdAt", applied_at as "appliedAt"`;

export async function dnsRevision(
  sql: Knex,
  clusterId: string,
  number: number | null,
): Promise<DnsRevisionRow | undefined> {
  if (number === null) return undefined;
  const { rows } = await sql.raw<{ rows: DnsRevisionRow[] }>(
    `select ${COLUMNS} from dns_revision where cluster_id = ? and number = ?`,
    [clusterId, number],
  );
  return rows[0];
}

export async function dnsRevisionPage(
  sql: Knex,
  clusterId: string,
  limit: number,
  offset: number,
): Promise<{ rows: DnsRevisionRow[]; total: number }> {
  const [page, count] = await Promise.all([
    sql.raw<{ rows: DnsRevisionRow[] }>(
      `select ${COLUMNS} from dns_revision where cluster_id = ? order by number desc limit ? offset ?`,
      [clusterId, limit, offset],
    ),
    sql.raw<{ rows: { total: number }[] }>('select count(*)::int as total from dns_revision where cluster_id = ?', [
      clusterId,
    ]),
  ]);
  return { rows: page.rows, total: count.rows[0]!.total };
}

/**
 * Inserts the next revision of the locked binding. A blocked one replaces the blocked one before; any other is what names
 * follow from now on.
 */
export async function insertDnsRevision(sql: Knex, given: NewDnsRevision, now: Date): Promise<number> {
  const { clusterId, status } = given;
  const blocked = status === 'blocked';
  await sql.raw(
    `update dns_revision set status = 'superseded'
      where cluster_id = :clusterId and (status = 'blocked' or (not :blocked and status in ('pending', 'failed')))`,
    { clusterId, blocked },
  );
  const { rows } = await sql.raw<{ rows: { number: number }[] }>(
    `update dns_binding set revision = revision + 1, due_at = :now,
            target = case when :blocked then target else revision + 1 end,
            applied = case when :status = 'applied' then revision + 1 else applied end,
            blocked = case when :blocked then revision + 1 end
      where cluster_id = :clusterId returning revision::int as number`,
    { clusterId, blocked, status, now },
  );
  const { number } = rows[0]!;
  await sql('dns_revision').insert({
    cluster_id: clusterId,
    number,
    status,
    reason: given.reason,
    reason_params: JSON.stringify(given.reasonParams),
    actor: JSON.stringify(given.actor),
    binding: JSON.stringify(given.binding),
    sets: JSON.stringify(given.sets),
    difference: JSON.stringify(given.difference),
    removed: given.removed,
    previous: given.previous,
    created_at: now,
    applied_at: status === 'applied' ? now : null,
  });
  await sql.raw(
    `delete from dns_revision r using dns_binding b
      where b.cluster_id = r.cluster_id and r.cluster_id = ? and r.number <= b.revision - ${KEPT}
        and r.number is distinct from b.target and r.number is distinct from b.applied
        and r.number is distinct from b.blocked`,
    [clusterId],
  );
  return number;
}

/** The nodes are again as the target has it: nothing is held any more. */
export async function endBlockedRevision(sql: Knex, clusterId: string): Promise<void> {
  await sql.raw(
    `with ended as (update dns_binding set blocked = null where cluster_id = :id returning cluster_id)
     update dns_revision r set status = 'superseded' from ended e where r.cluster_id = e.cluster_id and r.status = 'blocked'`,
    { id: clusterId },
  );
}
