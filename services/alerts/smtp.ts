import { X509Certificate } from 'node:crypto';
import { badField, fail } from '../../contract/errors.ts';
import type { Input } from '../../contract/procedure.ts';
import type { AlertSmtp, alertSmtp } from '../../contract/resources/alerts.ts';
import {
  type AlertSmtpRow,
  readAlertSmtp,
  SMTP_PASSWORD_PLACE,
  type SmtpSettings,
  writeAlertSmtp,
} from '../../models/alerts/alert-smtp.ts';
import { recordAudit } from '../../models/audit/audit-entry.ts';
import { lockSetting, settingTarget } from '../../models/db/setting.ts';
import { assertUpdatedAt, nextUpdatedAt } from '../../models/db/updated-at.ts';
import type { Call } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { write } from '../../runtime/write.ts';

const ALERT_SMTP = 'alert_smtp';
const UNSET: SmtpSettings = { host: '', port: 465, secure: true, from: '', username: '', ca: '' };
const HOST = /^(\[?[0-9a-f:.]+\]?|[a-z0-9]([a-z0-9_.-]*[a-z0-9])?)$/i;
const FROM = /^[^\s@<>,;"]+@[^\s@<>,;"]+$|^[^<>@,;"\\]+<[^\s@<>,;"]+@[^\s@<>,;"]+>$/;
const PEM = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

export async function getSmtp({ pools }: Runtime): Promise<AlertSmtp> {
  return present(await readAlertSmtp(pools.api));
}

/** Throws BAD_REQUEST, SMTP_PASSWORD_REQUIRED, SMTP_CA_INVALID, UPDATED_AT_MISMATCH. */
export async function setSmtp(runtime: Runtime, input: Input<typeof alertSmtp.set>, call: Call): Promise<AlertSmtp> {
  const settings = settingsOf(input);
  return write(runtime, call, {}, async (tx) => {
    await lockSetting(tx.sql, ALERT_SMTP);
    const before = await readAlertSmtp(tx.sql);
    assertUpdatedAt(input.expectedUpdatedAt, before?.updatedAt ?? null);
    const password = passwordOf(runtime, input.password, settings, before);
    const updatedAt = nextUpdatedAt(before?.updatedAt ?? new Date(0), tx.now);
    await writeAlertSmtp(tx.sql, { settings, password, updatedAt });
    const { ca, ...said } = settings;
    const changed = { passwordChanged: input.password !== undefined, ca: ca !== '' };
    await recordAudit(tx, 'alert.smtp_update', settingTarget(ALERT_SMTP), { ...said, ...changed });
    return present({ settings, password, updatedAt });
  });
}

function settingsOf(input: Input<typeof alertSmtp.set>): SmtpSettings {
  const { port = 465, secure = true, username = '', ca = '' } = input;
  const host = input.host.trim();
  const from = input.from.trim();
  if (host !== '' && !HOST.test(host)) badField('/host', 'format', { format: 'hostname' });
  if ((host !== '' || from !== '') && (!FROM.test(from) || /\p{Cc}/u.test(from)))
    badField('/from', 'format', { format: 'email' });
  assertCa(ca);
  return { host, port, secure, from, username, ca };
}

function assertCa(ca: string): void {
  if (ca === '') return;
  const found = ca.match(PEM) ?? fail('SMTP_CA_INVALID');
  try {
    for (const pem of found) new X509Certificate(pem);
  } catch {
    fail('SMTP_CA_INVALID');
  }
}

/** A stored password goes to no other server, and to the same one in no other way. */
function passwordOf(
  { sealer }: Runtime,
  given: string | undefined,
  settings: SmtpSettings,
  before: AlertSmtpRow | undefined,
): string | null {
  if (settings.username === '' || given === '') return null;
  if (given !== undefined) return sealer.seal(Buffer.from(given), SMTP_PASSWORD_PLACE);
  if (!before?.password) return null;
  const connection = ({ host, port, secure, username, ca }: SmtpSettings) =>
    JSON.stringify([host, port, secure, username, ca]);
  if (connection(settings) !== connection(before.settings)) fail('SMTP_PASSWORD_REQUIRED');
  return before.password;
}

function present(row: AlertSmtpRow | undefined): AlertSmtp {
  const { settings, password, updatedAt } = row ?? { settings: UNSET, password: null, updatedAt: null };
  return { ...settings, passwordSet: password !== null, updatedAt: updatedAt?.toISOString() ?? null };
}
