// Deletes what is old, in batches: each function deletes up to one batch and answers how many rows that were.
import type { Knex } from 'knex';
import { LISTED_REVISIONS } from '../../contract/resources/revisions.ts';
import { readAuditDays } from '../audit/audit-log.ts';

/** Rows in one batch at most. */
export const SWEEP_BATCH = 2000;
/** Closed entries kept at most beyond the live ones, however few those are. */
const MIN_CLOSED = 10_000;

/**
 * Differences reach back 7 days, less where closed entries would outnumber the live ones, never less than 15 minutes:
 * snapshots read at a revision that young.
 */
export async function raiseDeltaFloors(sql: Knex): Promise<void> {
  await sql.raw(`
    with floor as (
      select h.cluster_id, greatest(
        (select max(r.number) from config_revision r where r.cluster_id = h.cluster_id and r.epoch = h.epoch
          and r.created_at < now() - interval '7 days'),
        (select least(surplus.to_revision, coalesce((
            select max(r.number) from config_revision r where r.cluster_id = h.cluster_id and r.epoch = h.epoch
              and r.created_at < now() - interval '15 minutes'), 0))
          from (select e.to_revision from config_entry e
            where e.cluster_id = h.cluster_id and e.to_revision is not null
            order by e.to_revision desc offset greatest(h.entry_count, ${MIN_CLOSED}) limit 1) surplus)) as revision
      from cluster_head h
    )
    update cluster_head h set delta_floor = floor.revision from floor
    where floor.cluster_id = h.cluster_id and floor.revision > h.delta_floor`);
}

/** Closed entries that no difference begins before, unless one of the listed revisions ran them. */
export async function sweepEntries(sql: Knex): Promise<number> {
  return deleted(
    sql,
    `delete from config_entry where ctid = any(array(
       select e.ctid from cluster_head h join config_entry e
         on e.cluster_id = h.cluster_id and e.to_revision is not null and e.to_revision <= h.delta_floor
           and e.to_revision <= h.revision - ${LISTED_REVISIONS} + 1
       limit ${SWEEP_BATCH}))`,
  );
}

/** Beyond the latest that people see, a revision stays as long as it can be a base. */
export async function sweepRevisions(sql: Knex): Promise<number> {
  return deleted(
    sql,
    `delete from config_revision where ctid = any(array(
       select r.ctid from cluster_head h join config_revision r on r.cluster_id = h.cluster_id
         and r.number <= h.revision - ${LISTED_REVISIONS} and (r.number < h.delta_floor or r.epoch <> h.epoch)
       limit ${SWEEP_BATCH}))`,
  );
}

/** A blob without an entry for a day; one that a publication is about to use is locked by it and skipped. */
export async function sweepBlobs(sql: Knex): Promise<number> {
  return deleted(
    sql,
    `delete from config_blob where hash = any(array(
       select b.hash from config_blob b where b.touched_at < now() - interval '24 hours'
         and not exists (select from config_entry e where e.blob_hash = b.hash)
       limit ${SWEEP_BATCH} for update skip locked))`,
  );
}

/** Settings that no entry refers to for a day; spared as blobs are. */
export async function sweepSettings(sql: Knex): Promise<number> {
  return deleted(
    sql,
    `delete from config_settings where hash = any(array(
       select s.hash from config_settings s where s.touched_at < now() - interval '24 hours'
         and not exists (select from config_entry e where e.settings_hash = s.hash)
       limit ${SWEEP_BATCH} for update skip locked))`,
  );
}

/** Expired for an hour: no node can hold a copy any more. */
export async function purgeBans(sql: Knex): Promise<number> {
  return deleted(
    sql,
    `delete from ban where id = any(array(
       select id from ban where expires_at < now() - interval '1 hour' limit ${SWEEP_BATCH} for update skip locked))`,
  );
}

export async function purgeBanChanges(sql: Knex): Promise<number> {
  return deleted(
    sql,
    `delete from ban_change where seq = any(array(
       select seq from ban_change where keep_until < now() limit ${SWEEP_BATCH} for update skip locked))`,
  );
}

/** Records live for 24 hours. */
export async function purgeIdempotency(sql: Knex): Promise<number> {
  return deleted(
    sql,
    `delete from idempotency_record where (namespace, key) in (
       select namespace, key from idempotency_record where started_at < now() - interval '24 hours'
       limit ${SWEEP_BATCH} for update skip locked)`,
  );
}

/** A node that got no answer reports again within minutes, not days. */
export async function purgeSecurityEventNames(sql: Knex): Promise<number> {
  return deleted(
    sql,
    `delete from security_event_seen where ctid = any(array(
       select ctid from security_event_seen where seen_at < now() - interval '24 hours' limit ${SWEEP_BATCH}))`,
  );
}

/** What weighed most is shown of 168 hours at most. */
export async function purgeSecurityHeavy(sql: Knex): Promise<number> {
  return deleted(
    sql,
    `delete from security_heavy where ctid = any(array(
       select ctid from security_heavy where minute < now() - interval '169 hours' limit ${SWEEP_BATCH}))`,
  );
}

/** Alerts that ended are kept for 90 days. */
export async function purgeAlerts(sql: Knex): Promise<number> {
  return deleted(
    sql,
    `delete from alert where id = any(array(
       select id from alert where resolved_at < now() - interval '90 days'
       limit ${SWEEP_BATCH}))`,
  );
}

/** Tokens are listed for 7 days after they were used or ran out. */
export async function purgeTokens(sql: Knex): Promise<number> {
  return deleted(
    sql,
    `delete from enrollment_token where id = any(array(
       select id from enrollment_token where coalesce(used_at, expires_at) < now() - interval '7 days'
       limit ${SWEEP_BATCH} for update skip locked))`,
  );
}

/** The history of rollouts is kept for 90 days. */
export async function purgeRolloutEvents(sql: Knex): Promise<number> {
  return deleted(
    sql,
    `delete from rollout_event where ctid = any(array(
       select e.ctid from cluster c join rollout_event e on e.cluster_id = c.id and e.at < now() - interval '90 days'
       limit ${SWEEP_BATCH} for update of e skip locked))`,
  );
}

/**
 * Certificates of nodes that expired 30 days ago. The active certificate of a node stays: it shows that the node has to be
 * enrolled again. An expired serial needs no row to be refused.
 */
export async function purgeNodeCertificates(sql: Knex): Promise<number> {
  return deleted(
    sql,
    `delete from node_certificate where serial = any(array(
       select k.serial from node_certificate k
        where k.not_after < now() - interval '30 days'
          and (k.state <> 'active' or not exists (select from node n where n.id = k.node_id))
        limit ${SWEEP_BATCH} for update skip locked))`,
  );
}

/** Names of deleted sites that neither usage nor a kept entry refers to. */
export async function purgeSiteLabels(sql: Knex): Promise<number> {
  return deleted(
    sql,
    `delete from site_label where site_id = any(array(
       select l.site_id from site_label l
        where not exists (select from site s where s.id = l.site_id)
          and not exists (select from deleted_site d where d.site_id = l.site_id)
          and not exists (select from config_entry e where e.owner = 'site:' || l.site_id)
        limit ${SWEEP_BATCH} for update skip locked))`,
  );
}

/** Cursors of deleted nodes. The channel refuses their reports, so that a stored batch cannot arrive again. */
export async function purgeUsageCursors(sql: Knex): Promise<number> {
  return deleted(
    sql,
    `delete from usage_cursor where node_id = any(array(
       select c.node_id from usage_cursor c
        where not exists (select from node n where n.id = c.node_id)
          and (c.stored_at is null or c.stored_at < now() - interval '7 days')
        limit ${SWEEP_BATCH} for update skip locked))`,
  );
}

/** Entries beyond the days of the setting. */
export async function purgeAuditLog(sql: Knex): Promise<number> {
  return deleted(
    sql,
    `delete from audit_entry where id = any(array(
       select id from audit_entry where occurred_at < now() - make_interval(days => ${await readAuditDays(sql)})
       limit ${SWEEP_BATCH} for update skip locked))`,
  );
}

async function deleted(sql: Knex, statement: string): Promise<number> {
  const { rowCount } = await sql.raw<{ rowCount: number }>(statement);
  return rowCount;
}
