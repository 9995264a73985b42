// Channels that messages about alerts go through. Their configuration is sealed, and opened to send a message alone.
import type { Knex } from 'knex';
import type { AlertLocale } from '../../contract/alert-kind.ts';
import type { ChannelKind, SendFailure } from '../../contract/resources/alerts.ts';
import type { SecretPlace } from '../../runtime/sealer.ts';

export interface AlertChannelRow {
  id: string;
  name: string;
  enabled: boolean;
  platform: boolean;
  locale: AlertLocale;
  kind: ChannelKind;
  /** Sealed. */
  config: string;
  lastError: SendFailure | null;
  lastSentAt: Date | null;
  createdAt: Date;
  updatedAt: Date;
}

export type SavedAlertChannel = Pick<
  AlertChannelRow,
  'id' | 'name' | 'enabled' | 'platform' | 'locale' | 'kind' | 'config'
>;

const COLUMNS = `c.id, c.name, c.enabled, c.platform, c.locale, c.kind, c.config, c.last_error as "lastError",
  c.last_sent_at as "lastSentAt", c.created_at as "createdAt", c.updated_at as "updatedAt"`;

export function channelConfigPlace(id: string): SecretPlace {
  return { table: 'alert_channel', column: 'config', row: id };
}

/** All of them, by name; there are few. */
export async function alertChannels(sql: Knex): Promise<AlertChannelRow[]> {
  const { rows } = await sql.raw<{ rows: AlertChannelRow[] }>(
    `select ${COLUMNS} from alert_channel c order by lower(c.name), c.id`,
  );
  return rows;
}

/** Undefined: there is none. `lock` keeps it until the end of the transaction. */
export async function alertChannelById(
  sql: Knex,
  id: string,
  { lock = false }: { lock?: boolean } = {},
): Promise<AlertChannelRow | undefined> {
  const { rows } = await sql.raw<{ rows: AlertChannelRow[] }>(
    `select ${COLUMNS} from alert_channel c where c.id = ? ${lock ? 'for update' : ''}`,
    [id],
  );
  return rows[0];
}

/** Counts the channels, and keeps others from adding one until the end of the transaction. */
export async function countAlertChannels(sql: Knex): Promise<number> {
  await sql.raw('lock table alert_channel in share row exclusive mode');
  const { rows } = await sql.raw<{ rows: { count: number }[] }>('select count(*)::int as count from alert_channel');
  return rows[0]!.count;
}

export async function insertAlertChannel(sql: Knex, channel: SavedAlertChannel, now: Date): Promise<void> {
  await sql('alert_channel').insert({ ...channel, created_at: now, updated_at: now });
}

/** The error of its latest message is forgotten. */
export async function updateAlertChannel(
  sql: Knex,
  { id, ...channel }: SavedAlertChannel,
  updatedAt: Date,
): Promise<void> {
  await sql('alert_channel')
    .where({ id })
    .update({ ...channel, last_error: null, updated_at: updatedAt });
}

export async function deleteAlertChannel(sql: Knex, id: string): Promise<void> {
  await sql('alert_channel').where({ id }).delete();
}

/** Keeps what became of its latest message; null: it was delivered. */
export async function noteChannelResult(sql: Knex, id: string, error: SendFailure | null): Promise<void> {
  await sql.raw(
    `update alert_channel set last_error = :error, last_sent_at = case when :error::text is null then now() else last_sent_at end
      where id = :id`,
    { id, error } as never,
  );
}
