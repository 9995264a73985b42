import { type ErrorEntries, entry } from '../error-entry.ts';
import type { ReasonEntries } from '../reason-entry.ts';
import type { SiteFeatureEntries } from '../site-feature.ts';

export const errors = {
  LISTEN_PORT_CONFLICT: entry(400, 'Port `data.port` cannot serve both HTTP and HTTPS. Put it into one list.'),
  LISTEN_PORT_IN_USE: entry(
    409,
    'Sites still use port `data.port`, which the change would remove; `data.sites` lists the first five. ' +
      'Change them first.',
  ),
  SITE_PORT_UNAVAILABLE: entry(
    400,
    'The cluster does not listen on port `data.port` for this protocol. Add it to the ports of the cluster first.',
  ),
  SITE_PORTS_EMPTY: entry(400, 'The site has no port. Give it at least one HTTP or HTTPS port.'),
  SITE_HTTPS_PORT_NEEDS_CERTIFICATE: entry(
    400,
    'HTTPS port `data.port` needs a certificate. Give the site a certificate first.',
  ),
} satisfies ErrorEntries;

export const siteFeatures = {
  edgePorts: { capability: 'edge-ports-v1', configured: true },
} satisfies SiteFeatureEntries;

export const reasons = {
  listen_ports_updated: 'Ports of the cluster changed.',
} satisfies ReasonEntries;
