// Ports of a site, as far as its cluster listens on them.
import { fail } from '../../contract/errors.ts';
import type { HttpsSettings } from '../../contract/resources/site-https.ts';
import type { ListenPorts } from '../../models/clusters/listen-ports.entry.ts';
import { hasHttpsPort, portInNeedOfCertificate, type SitePorts } from '../../models/sites/site-ports.ts';

export type GivenPorts = { [protocol in keyof SitePorts]?: readonly number[] };

/** The given lists in place of those of before, sorted, each port once. */
export function changedPorts(before: SitePorts, given: GivenPorts | undefined): SitePorts {
  const sorted = (ports: readonly number[]) => [...new Set(ports)].sort((a, b) => a - b);
  return given ? { http: sorted(given.http ?? before.http), https: sorted(given.https ?? before.https) } : before;
}

/**
 * Judges the ports of a site with these HTTPS settings. Throws SITE_PORTS_EMPTY, SITE_PORT_UNAVAILABLE,
 * SITE_HTTPS_PORT_NEEDS_CERTIFICATE, HTTPS_REDIRECT_PORT_INVALID.
 */
export function assertPorts(
  ports: SitePorts,
  { httpPorts, httpsPorts }: ListenPorts,
  { certificateId, redirectPort }: Pick<HttpsSettings, 'certificateId' | 'redirectPort'>,
): void {
  if (ports.http.length + ports.https.length === 0) fail('SITE_PORTS_EMPTY');
  const offered: readonly (readonly [keyof SitePorts, ReadonlySet<number>])[] = [
    ['http', new Set([80, ...httpPorts])],
    ['https', new Set([443, ...httpsPorts])],
  ];
  for (const [protocol, known] of offered) {
    const port = ports[protocol].find((one) => !known.has(one));
    if (port !== undefined) fail('SITE_PORT_UNAVAILABLE', { port, path: `/ports/${protocol}` });
  }
  if (!hasHttpsPort(ports, redirectPort)) fail('HTTPS_REDIRECT_PORT_INVALID', { port: redirectPort });
  const port = certificateId === null ? portInNeedOfCertificate(ports) : undefined;
  if (port !== undefined) fail('SITE_HTTPS_PORT_NEEDS_CERTIFICATE', { port, path: '/ports/https' });
}
