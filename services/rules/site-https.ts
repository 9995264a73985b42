// What of HTTPS a site has for a host, as nodes see it.
import { uncoveredDomains } from '../../contract/scalars/certificate-coverage.ts';
import { type Domain, formatDomain, parseDomain } from '../../contract/scalars/domain.ts';
import { domainOf } from '../../contract/scalars/domain-of-host.ts';
import { namesOfCertificates, readSiteHttps } from '../../models/sites/site-https.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import type { HttpsRedirect } from './run/request.ts';

const NONE = () => null;

/** Where plain requests for a host of the site are sent: `pending` while it waits for a certificate, null where there is no HTTPS. */
export async function siteHttps(
  sql: Runtime['pools']['api'],
  siteId: string,
  domains: readonly Domain[],
): Promise<(host: string) => HttpsRedirect | 'pending' | null> {
  const saved = await readSiteHttps(sql, siteId);
  if (!saved || saved.https.certificateId === null) return NONE;
  const { forceHttps, redirectStatus, redirectPort, redirectExcludedDomains } = saved.https;
  const names = await namesOfCertificates(sql, siteId);
  if (names.length === 0) return NONE;
  const pending = new Set(uncoveredDomains(domains, names).map(formatDomain));
  const excluded = new Set(
    redirectExcludedDomains.flatMap((text) => parseDomain(text) ?? []).map((domain) => formatDomain(domain)),
  );
  return (host) => {
    const domain = domainOf(host, domains);
    if (domain === null) return null;
    if (pending.has(domain)) return 'pending';
    if (!forceHttps) return { forced: false, status: 301, port: 443 };
    return { forced: !excluded.has(domain), status: redirectStatus, port: redirectPort };
  };
}
