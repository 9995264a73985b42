// HTTPS of the demo site, set up as its user would: a certificate uploaded, chosen for the site, HTTP/2 and HTTP/3 on.
import { isApiError } from '../../client/src/index.ts';
import type { ConsoleClient } from './console-client.ts';
import type { DemoAuthority } from './demo-authority.ts';
import type { DemoMemory } from './demo-state.ts';
import { SITE_HOST } from './demo-steps.ts';

const NAME = 'Demo';
/** A certificate that ends sooner is replaced at the start. */
const REPLACE_BEFORE_MS = 30 * 86_400_000;

/**
 * Gives the site a certificate of the authority the first time, and replaces it when it ends soon or the authority is
 * another. What was changed by hand stays: another certificate of the site, and the demo's when it was deleted.
 */
export async function ensureHttps(client: ConsoleClient, memory: DemoMemory, authority: DemoAuthority): Promise<void> {
  if (memory.state.certificate) await refresh(client, memory, authority, memory.state.certificate);
  else await upload(client, memory, authority);
  const { certificate } = memory.state;
  if (!certificate || certificate.chosen) return;
  await choose(client, memory, certificate.id);
  memory.save({ certificate: { ...certificate, chosen: true } });
}

/** Gives the site the certificate, unless it has one that was chosen by hand; answers whether it has it. */
export async function choose(client: ConsoleClient, memory: DemoMemory, certificateId: string): Promise<boolean> {
  const { site, certificate, acmeCertificate } = memory.state;
  if (!site) throw new Error('the demo has no site yet');
  const api = client.typed;
  const { settings } = await api.sites.https.get({ id: site.id });
  if (![null, certificate?.id, acmeCertificate].includes(settings.certificateId)) return false;
  // The next start without --acme gives it the demo's again, also where the console gave it the other one by itself.
  if (certificate && certificateId !== certificate.id) memory.save({ certificate: { ...certificate, chosen: false } });
  if (settings.certificateId === certificateId) return true;
  await api.sites.https.set({ id: site.id, settings: { ...settings, certificateId, http2: true, http3: true } });
  return true;
}

async function upload(client: ConsoleClient, memory: DemoMemory, authority: DemoAuthority): Promise<void> {
  const issued = await authority.issue(SITE_HOST, new Date());
  const { id } = await client.typed.certificates.upload({ name: NAME, ...issued });
  memory.save({ certificate: { id, authority: authority.sha256, chosen: false } });
}

async function refresh(
  client: ConsoleClient,
  memory: DemoMemory,
  authority: DemoAuthority,
  certificate: NonNullable<DemoMemory['state']['certificate']>,
): Promise<void> {
  const api = client.typed;
  const { id } = certificate;
  try {
    const { notAfter } = await api.certificates.get({ id });
    const lasts = notAfter !== null && Date.parse(notAfter) - Date.now() > REPLACE_BEFORE_MS;
    if (lasts && certificate.authority === authority.sha256) return;
    await api.certificates.replace({ id, ...(await authority.issue(SITE_HOST, new Date())) });
    memory.save({ certificate: { ...certificate, authority: authority.sha256 } });
  } catch (error) {
    // Somebody deleted it.
    if (!isApiError(error, 'CERTIFICATE_NOT_FOUND')) throw error;
  }
}
