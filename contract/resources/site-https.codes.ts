import { type ErrorEntries, entry } from '../error-entry.ts';
import type { SiteFeatureEntries } from '../site-feature.ts';

export const errors = {
  HTTPS_REQUIRES_CERTIFICATE: entry(400, '`data.field` needs a certificate. Give the site a certificate first.'),
  HTTPS_REDIRECT_PORT_INVALID: entry(
    400,
    '`redirectPort` is neither 443 nor an HTTPS port of the site; see `data.port`. Use one of these.',
  ),
  HTTPS_REDIRECT_DOMAIN_INVALID: entry(
    400,
    '`redirectExcludedDomains` names domains that the site does not have. Remove them.',
  ),
  CLIENT_CA_INVALID: entry(400, 'The CA certificates for client certificates cannot be used; `data.reason` says why.'),
  CLIENT_CERTIFICATE_HTTP3: entry(400, 'Client certificates do not work with HTTP/3. Turn one of them off.'),
} satisfies ErrorEntries;

export const siteFeatures = {
  https: { capability: 'https-v1', configured: true },
  http3: { capability: 'http3-v1', configured: true },
  clientCertificates: { capability: 'client-certificates-v1', configured: true },
  brotli: { capability: 'brotli-v1', configured: true },
  zstd: { capability: 'zstd-v1', configured: true },
} satisfies SiteFeatureEntries;
