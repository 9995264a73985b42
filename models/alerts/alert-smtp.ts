// The mail server that messages about alerts go through. Its password is sealed.
import type { Knex } from 'knex';
import type { AlertSmtp } from '../../contract/resources/alerts.ts';
import type { SecretPlace } from '../../runtime/sealer.ts';

export type SmtpSettings = Omit<AlertSmtp, 'passwordSet' | 'updatedAt'>;

export interface AlertSmtpRow {
  settings: SmtpSettings;
  /** Sealed; null without one. */
  password: string | null;
  updatedAt: Date;
}

export const SMTP_PASSWORD_PLACE: SecretPlace = { table: 'alert_smtp', column: 'password', row: '1' };

/** Undefined: it was never set. */
export async function readAlertSmtp(sql: Knex): Promise<AlertSmtpRow | undefined> {
  const { rows } = await sql.raw<{ rows: AlertSmtpRow[] }>(
    'select settings, password, updated_at as "updatedAt" from alert_smtp where id = 1',
  );
  return rows[0];
}

export async function writeAlertSmtp(sql: Knex, { settings, password, updatedAt }: AlertSmtpRow): Promise<void> {
  await sql('alert_smtp')
    .insert({ id: 1, settings: JSON.stringify(settings), password, updated_at: updatedAt })
    .onConflict('id')
    .merge();
}
