// Days of security events: partitions are made ahead and dropped when they are as old as the settings say.
import type { Knex } from 'knex';
import { readProtectionSettings } from './protection-setting.ts';

const AHEAD_DAYS = 7;
const DAY_MS = 86_400_000;
const NAME = /^security_event_(\d{4})(\d{2})(\d{2})$/;

/** Names of the partitions, oldest first. */
export async function securityPartitions(sql: Knex): Promise<string[]> {
  const { rows } = await sql.raw<{ rows: { name: string }[] }>(
    `select relid::text as name from pg_partition_tree('security_event') where isleaf order by 1`,
  );
  return rows.map(({ name }) => name).filter((name) => NAME.test(name));
}

export async function makeSecurityPartitions(sql: Knex, now: Date): Promise<void> {
  await sql.raw(
    `select security_event_partition((?::timestamptz at time zone 'UTC')::date + d) from generate_series(0, ?) d`,
    [now, AHEAD_DAYS],
  );
}

/** Drops the days of which nothing is young enough any more; answers their names. */
export async function dropOldSecurityPartitions(sql: Knex, now: Date): Promise<string[]> {
  const { eventRetentionDays } = await readProtectionSettings(sql);
  const keepFrom = now.getTime() - eventRetentionDays * DAY_MS;
  const old = (await securityPartitions(sql)).filter((name) => endOf(name) <= keepFrom);
  for (const name of old) {
    await sql.transaction(async (trx) => {
      // Readers and writers of other days wait behind this lock: better try again later than let them queue.
      await trx.raw(`set local lock_timeout = '2s'`);
      await trx.raw('drop table if exists ??', [name]);
      await trx('security_event_day').where('day', '=', dayIn(name)).delete();
    });
  }
  return old;
}

function dayIn(name: string): string {
  return NAME.exec(name)!.slice(1).join('-');
}

function endOf(name: string): number {
  const [, year, month, day] = NAME.exec(name)!;
  return Date.UTC(Number(year), Number(month) - 1, Number(day)) + DAY_MS;
}
