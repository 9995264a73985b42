// How often rules matched, limited or blocked, as nodes count it.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    -- Appended, never updated; moved to hours after two of them. site_id '' = rules of the platform, counted by nodes; event
    -- as RuleEvent of the messages has it. A rule stays here when it is gone.
    create table rule_minute (
      minute timestamptz not null,
      site_id text not null,
      platform boolean not null,
      rule_id text not null,
      event smallint not null,
      requests bigint not null
    );
    create index rule_minute_time on rule_minute (minute);
    create index rule_minute_site on rule_minute (site_id, minute);

    create table rule_hour (
      starts_at timestamptz not null,
      site_id text not null,
      platform boolean not null,
      rule_id text not null,
      event smallint not null,
      requests numeric not null,
      primary key (site_id, starts_at, platform, rule_id, event)
    ) partition by range (starts_at);
  `);
}
