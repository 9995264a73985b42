// Mail through the server of the settings, at an address that the policy allows.
import { isIP } from 'node:net';
import { createTransport } from 'nodemailer';
import { readAlertSmtp, SMTP_PASSWORD_PLACE } from '../../../models/alerts/alert-smtp.ts';
import { AddressRefused, resolveChecked } from '../../../proto/address-policy.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { SendFailed } from '../send-failed.ts';
import { SEND_MS, type Sender } from '../sender.ts';

export const email: Sender<'email'> = {
  check: () => undefined,
  async send(runtime, { to }, { id, text, url }) {
    const { pools, env, sealer } = runtime;
    const stored = await readAlertSmtp(pools.api);
    if (!stored || stored.settings.host === '') throw new SendFailed('not_configured');
    const { host, port, secure, from, username, ca } = stored.settings;
    const [address] = await addressesOf(host, env.outboundAllow);
    const transport = createTransport({
      host: address!,
      port,
      secure,
      requireTLS: !secure,
      tls: { ...(isIP(host) === 0 ? { servername: host } : {}), ...(ca === '' ? {} : { ca }), minVersion: 'TLSv1.2' },
      ...(username === ''
        ? {}
        : { auth: { user: username, pass: stored.password ? opened(sealer, stored.password) : '' } }),
      name: new URL(env.publicUrl).hostname,
      connectionTimeout: SEND_MS,
      greetingTimeout: SEND_MS,
      socketTimeout: SEND_MS,
      dnsTimeout: SEND_MS,
      disableFileAccess: true,
      disableUrlAccess: true,
    });
    try {
      await within(
        transport.sendMail({
          from,
          to,
          subject: text,
          text: `${text}\n\n${url}\n`,
          messageId: `<${id}@${new URL(env.publicUrl).hostname}>`,
          // Auto-replies go to nobody.
          headers: { 'Auto-Submitted': 'auto-generated' },
        }),
      );
    } catch (error) {
      throw error instanceof SendFailed ? error : new SendFailed(reasonOf(error), error);
    } finally {
      transport.close();
    }
  },
};

function opened(sealer: Runtime['sealer'], password: string): string {
  return sealer.open(password, SMTP_PASSWORD_PLACE).toString();
}

async function addressesOf(host: string, allow: readonly string[]): Promise<string[]> {
  try {
    return await resolveChecked(host, allow, SEND_MS);
  } catch (error) {
    if (!(error instanceof AddressRefused)) throw error;
    if (error.reason === 'forbidden') throw new SendFailed('refused', error);
    throw new SendFailed(error.reason === 'timeout' ? 'timeout' : 'unreachable', error);
  }
}

/** Each step has its own limit; so does the whole. */
async function within(sent: Promise<unknown>): Promise<void> {
  sent.catch(() => undefined);
  const late = AbortSignal.timeout(2 * SEND_MS);
  const { promise, reject } = Promise.withResolvers<never>();
  late.addEventListener('abort', () => reject(new SendFailed('timeout')));
  await Promise.race([sent, promise]);
}

function reasonOf(error: unknown): SendFailed['reason'] {
  const { code = '', originalCode = '' } = (error ?? {}) as { code?: string; originalCode?: string };
  if (code === 'EAUTH') return 'authentication';
  if (code === 'ETIMEDOUT') return 'timeout';
  if (code === 'ETLS' || /^(ERR_TLS|ERR_SSL|CERT_|UNABLE_TO_|SELF_SIGNED|DEPTH_ZERO)/.test(originalCode)) return 'tls';
  if (code === 'EENVELOPE' || code === 'EMESSAGE') return 'rejected';
  return 'unreachable';
}
