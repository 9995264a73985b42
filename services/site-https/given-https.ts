// Turns the settings that a client sent into what is saved: complete, canonical, and checked as far as the schema cannot.
import { fail } from '../../contract/errors.ts';
import type { Input } from '../../contract/procedure.ts';
import {
  type CompressionSettings,
  DEFAULT_COMPRESSION,
  DEFAULT_HTTPS,
  type HttpsSettings,
  MAX_CLIENT_CAS,
  type siteHttps,
} from '../../contract/resources/site-https.ts';
import { formatDomain, parseDomain } from '../../contract/scalars/domain.ts';
import { readAuthorities } from '../../models/certificates/certificate-check.ts';
import type { SiteRow } from '../../models/sites/site.ts';
import { hasHttpsPort, portInNeedOfCertificate } from '../../models/sites/site-ports.ts';

type Given = Input<typeof siteHttps.set>['settings'];

/**
 * Settings for the site. Throws HTTPS_REQUIRES_CERTIFICATE, SITE_HTTPS_PORT_NEEDS_CERTIFICATE, HTTPS_REDIRECT_PORT_INVALID,
 * HTTPS_REDIRECT_DOMAIN_INVALID, CLIENT_CA_INVALID, CLIENT_CERTIFICATE_HTTP3; whether the certificates are there and cover
 * the site is not looked at.
 */
export function givenHttps(given: Given, site: SiteRow): { https: HttpsSettings; compression: CompressionSettings } {
  const https = httpsOf(given);
  assertCertificate(https, site);
  assertRedirect(https, site);
  assertClientCertificates(https);
  return {
    https: { ...https, redirectExcludedDomains: excludedDomains(https, site) },
    compression: compressionOf(given),
  };
}

function httpsOf(given: Given): HttpsSettings {
  const fields = Object.fromEntries(
    Object.entries(DEFAULT_HTTPS).map(([name, value]) => [name, given[name as keyof Given] ?? value]),
  ) as unknown as HttpsSettings;
  const { certificateId, additionalCertificateIds: others } = fields;
  return {
    ...fields,
    additionalCertificateIds: others.filter((id) => id !== certificateId),
    clientCertificate: { ...DEFAULT_HTTPS.clientCertificate, ...given.clientCertificate },
  };
}

function compressionOf(given: Given): CompressionSettings {
  const fields = Object.fromEntries(
    Object.entries(DEFAULT_COMPRESSION).map(([name, value]) => [name, given[name as keyof Given] ?? value]),
  ) as unknown as CompressionSettings;
  const types = (texts: readonly string[]) => [...new Set(texts.map((text) => text.toLowerCase()))];
  return {
    ...fields,
    gzipTypes: types(fields.gzipTypes),
    brotliTypes: types(fields.brotliTypes),
    zstdTypes: types(fields.zstdTypes),
  };
}

function assertCertificate(
  { certificateId, additionalCertificateIds, forceHttps, clientCertificate }: HttpsSettings,
  { ports }: SiteRow,
): void {
  if (certificateId !== null) return;
  const port = portInNeedOfCertificate(ports);
  if (port !== undefined) fail('SITE_HTTPS_PORT_NEEDS_CERTIFICATE', { port });
  const needs = (field: string) => fail('HTTPS_REQUIRES_CERTIFICATE', { field });
  if (additionalCertificateIds.length > 0) needs('additionalCertificateIds');
  if (forceHttps) needs('forceHttps');
  if (clientCertificate.mode !== 'off') needs('clientCertificate');
}

function assertRedirect({ redirectPort: port }: HttpsSettings, { ports }: SiteRow): void {
  if (!hasHttpsPort(ports, port)) fail('HTTPS_REDIRECT_PORT_INVALID', { port });
}

function excludedDomains({ redirectExcludedDomains: texts }: HttpsSettings, { domains }: SiteRow): string[] {
  const known = new Set(domains.map(formatDomain));
  const named = texts.map((text) => {
    const domain = parseDomain(text);
    return { text, name: domain && formatDomain(domain) };
  });
  const unknown = named.filter(({ name }) => name === null || !known.has(name));
  if (unknown.length > 0) fail('HTTPS_REDIRECT_DOMAIN_INVALID', { domains: unknown.map(({ text }) => text) });
  return [...new Set(named.map(({ name }) => name!))];
}

function assertClientCertificates({ clientCertificate: { mode, caPem }, http3 }: HttpsSettings): void {
  if (mode !== 'off' && http3) fail('CLIENT_CERTIFICATE_HTTP3');
  if (mode === 'off' && caPem.trim() === '') return;
  const authorities = readAuthorities(caPem, MAX_CLIENT_CAS);
  if (typeof authorities === 'string') fail('CLIENT_CA_INVALID', { reason: authorities });
}
