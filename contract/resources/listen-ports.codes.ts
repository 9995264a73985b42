import { type ErrorEntries, entry } from '../error-entry.ts';
import type { ReasonEntries } from '../reason-entry.ts';
import type { SiteFeatureEntries } from '../site-feature.ts';

export const errors = {
  LISTEN_PORT_CONFLICT: entry(400, 'A port cannot serve both HTTP and HTTPS; see data.port.'),
  LISTEN_PORT_IN_USE: entry(409, 'Sites still use a port that would go; see data.port and data.sites, the first five.'),
  SITE_PORT_UNAVAILABLE: entry(400, 'The cluster does not listen on the port for this protocol; see data.port.'),
  SITE_PORTS_EMPTY: entry(400, 'A site needs at least one port.'),
  SITE_HTTPS_PORT_NEEDS_CERTIFICATE: entry(400, 'The site has no certificate for an HTTPS port; see data.port.'),
} satisfies ErrorEntries;

export const siteFeatures = {
  edgePorts: { capability: 'edge-ports-v1', configured: true },
} satisfies SiteFeatureEntries;

export const reasons = {
  listen_ports_updated: 'Ports of the cluster changed.',
} satisfies ReasonEntries;
