// The history a database belongs to. A database that was restored or failed over with loss has forgotten numbers that
// nodes and readers have seen; a new epoch tells them, and numbers that carry no epoch jump ahead of anything seen.
import type { Knex } from 'knex';
import { ACME_TOPIC } from '../certificates/acme-token.ts';
import { LOCK_BAN_FEED, LOCK_PLATFORM } from '../db/locks.ts';

/** How far numbers jump that readers see without an epoch. */
export const SEQUENCE_JUMP = 1_000_000_000;

export interface HistoryState {
  epoch: string;
  /** Whether the server is the one, and on the timeline, that wrote the stored state. */
  same: boolean;
}

// The timeline as written to the log now: the control file learns of a promotion only at the next checkpoint.
const SYSTEM = `
  (select system_identifier::text from pg_control_system()) as system_identifier,
  ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::bigint as timeline`;

/** The epoch, and whether the server still is what it was. */
export async function readHistory(sql: Knex): Promise<HistoryState> {
  const { rows } = await sql.raw<{ rows: HistoryState[] }>(
    `select s.epoch::text, (s.system_identifier, s.timeline) = (now.system_identifier, now.timeline) as same
     from console_state s, (select ${SYSTEM}) now`,
  );
  return rows[0]!;
}

/** How far numbers of revisions and purges jump after a restore: more than are given between two backups. */
const RESTORE_JUMP = 1_000_000;

/**
 * As {@link beginEpoch} for a database that was restored from a backup, which knows nothing of what was given since: no
 * number of a revision or a purge that nodes or API clients may have seen is given again. Returns the epoch.
 */
export async function beginRestoredEpoch(sql: Knex, why: string): Promise<string> {
  return sql.transaction(async (trx) => {
    const { epoch } = await beginEpoch(trx, why);
    await trx.raw(
      `update cluster_head set number_floor = greatest(revision, canary_revision, number_floor) + ${RESTORE_JUMP}
        where revision > 0 or canary_revision is not null`,
    );
    await trx.raw(`update purge_head set seq = seq + ${RESTORE_JUMP}`);
    return epoch;
  });
}

/**
 * Begins a new epoch of every cluster's configuration and of the ban feed, in one transaction, unless the epoch is not
 * `expected` any more (somebody else has done it). Answers the epoch in force, which is beyond `beyond`. `why` is shown
 * in the revisions.
 */
export async function beginEpoch(
  sql: Knex,
  why: string,
  expected?: string,
  beyond = 0n,
): Promise<{ epoch: string; begun: boolean }> {
  return sql.transaction(async (trx) => {
    await trx.raw("set local lock_timeout = '10s'; set local transaction_timeout = '60s'");
    await trx.raw(LOCK_PLATFORM);
    const state = (await trx('console_state').forUpdate().first('epoch')) as { epoch: string };
    if (expected !== undefined && state.epoch !== expected) return { epoch: state.epoch, begun: false };
    const past = BigInt(state.epoch) > beyond ? BigInt(state.epoch) : beyond;
    const now = BigInt(Date.now());
    const epoch = String(now > past ? now : past + 1n);
    await trx.raw(
      `update console_state set epoch = ?, system_identifier = now.system_identifier, timeline = now.timeline
       from (select ${SYSTEM}) now`,
      [epoch],
    );
    await trx.raw('select from cluster_head order by cluster_id for no key update');
    await trx('cluster_head').update({ epoch });
    // A base is checked by the hash of its revision: the numbers go on from here under the new epoch.
    await trx.raw(
      `insert into config_revision (cluster_id, epoch, number, reason, params, actor, set_hash, entry_count,
           canary_set_hash, canary_entry_count)
       select cluster_id, epoch, number, 'history_restarted', ?::jsonb, ?::jsonb, set_hash, entry_count,
         case when number = canary_revision then canary_set_hash end,
         case when number = canary_revision then canary_entry_count end
       from cluster_head, lateral (select revision union select canary_revision) n(number) where number > 0`,
      [JSON.stringify({ why }), JSON.stringify({ type: 'system', id: null, name: 'history' })],
    );
    await trx.raw(LOCK_BAN_FEED);
    await trx.raw(
      `update ban_head set seq = setval('ban_seq', greatest(nextval('ban_seq'),
         (select max(seq) from ban_head)) + ${SEQUENCE_JUMP}) where cluster_id = ''`,
    );
    await trx.raw(`select setval('usage_seq', nextval('usage_seq') + ${SEQUENCE_JUMP})`);
    await trx('outbox').insert([
      { topic: 'config', key: '*' },
      { topic: 'canary', key: '*' },
      { topic: 'bans', key: '*' },
      { topic: ACME_TOPIC, key: '*' },
    ]);
    return { epoch, begun: true };
  });
}
