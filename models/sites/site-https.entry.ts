// Kind "site-https": how a site is reached over TLS, and which certificates it has. Without an entry it has no HTTPS.
import { X509Certificate } from 'node:crypto';
import { create, toBinary } from '@bufbuild/protobuf';
import type { Knex } from 'knex';
import { DEFAULT_HTTPS, type HttpsSettings, MAX_CLIENT_CAS } from '../../contract/resources/site-https.ts';
import { uncoveredDomains } from '../../contract/scalars/certificate-coverage.ts';
import { type Domain, formatDomain, parseDomain } from '../../contract/scalars/domain.ts';
import {
  CertificateRefSchema,
  CipherProfile,
  ClientCertificateMode,
  ClientCertificatesSchema,
  HttpsRedirectSchema,
  SiteHttpsSchema,
  TlsVersion,
} from '../../proto/gen/svc/config/v1/https_pb.js';
import type { Domain as DomainMessage } from '../../proto/gen/svc/config/v1/site_pb.js';
import { readAuthorities } from '../certificates/certificate-check.ts';
import type { Beside, CompiledEntry, Missing, Reference } from '../config/entry-kind.ts';
import { siteSettingsKind } from '../config/site-settings-kind.ts';
import { domainMessage } from './site.entry.ts';

export const SITE_HTTPS_KIND = 'site-https';

/** What a snapshot has. Certificates are those of now, whenever an entry is made of it. */
export interface PublishedHttps extends HttpsSettings {
  /** Domains that no certificate covered, as texts. */
  pendingDomains: string[];
}

/** A certificate that can be served. */
export interface ServedCertificate {
  id: string;
  name: string;
  names: string[];
  fingerprint: Buffer;
}

type Certificates = ReadonlyMap<string, ServedCertificate>;

const VERSIONS = { '1.2': TlsVersion.TLS_VERSION_1_2, '1.3': TlsVersion.TLS_VERSION_1_3 } as const;
const PROFILES = { modern: CipherProfile.MODERN, compatible: CipherProfile.COMPATIBLE } as const;
const MODES = { optional: ClientCertificateMode.OPTIONAL, required: ClientCertificateMode.REQUIRED } as const;

/** How an entry refers to a certificate. */
export function certificateRef(id: string): string {
  return `certificate:${id}`;
}

const SAVED = { table: 'site_https', column: 'https', defaults: { ...DEFAULT_HTTPS, pendingDomains: [] } };

export const siteHttpsKind = siteSettingsKind<PublishedHttps>(SITE_HTTPS_KIND, SAVED, {
  compilerVersion: 1,
  shown: (settings) => shown(settings as PublishedHttps),
  // Ten authorities of clients, and fifty domains excluded.
  maxBodyBytes: 256 * 1024,
  provides: { certificate: missingCertificates },
  renewed: renewedEntries,
  async compile(sql, clusterId, ids) {
    const { rows } = await sql.raw<{ rows: { id: string; https: HttpsSettings; domains: Domain[] }[] }>(
      `select h.site_id as id, h.https, d.domains from site_https h cross join lateral (
         select coalesce(jsonb_agg(jsonb_build_object('form', form, 'name', name) order by position), '[]') as domains
           from site_domain where site_id = h.site_id) d
        where h.cluster_id = ? and h.site_id = any(?) and h.https->>'certificateId' is not null`,
      [clusterId, ids as never],
    );
    const settings = new Map(rows.map(({ id, https }) => [id, { ...DEFAULT_HTTPS, ...https }]));
    const certificates = await servedCertificates(sql, [...settings.values()].flatMap(certificateIds));
    const compiled = new Map<string, CompiledEntry>();
    for (const { id, domains } of rows) {
      const entry = compileHttps(settings.get(id)!, domains, certificates);
      if (entry) compiled.set(id, entry);
    }
    return compiled;
  },
});

/** Ids of the certificates that the settings name, the first one first. */
export function certificateIds({
  certificateId,
  additionalCertificateIds,
}: Pick<HttpsSettings, 'certificateId' | 'additionalCertificateIds'>): string[] {
  return certificateId === null ? [] : [certificateId, ...additionalCertificateIds];
}

/** Those of the ids that have been issued, kept as they are until the end of a transaction. */
export async function servedCertificates(sql: Knex, ids: readonly string[]): Promise<Map<string, ServedCertificate>> {
  if (ids.length === 0) return new Map();
  const { rows } = await sql.raw<{ rows: ServedCertificate[] }>(
    `select id, name, names, fingerprint from certificate where id = any(?) and fingerprint is not null
      order by id for share`,
    [[...new Set(ids)] as never],
  );
  return new Map(rows.map((row) => [row.id, row]));
}

/** The entry of a site with these domains; null for one without a certificate. */
export function compileHttps(
  settings: HttpsSettings,
  domains: readonly Domain[],
  certificates: Certificates,
): CompiledEntry | null {
  const names = certificateIds(settings).flatMap((id) => certificates.get(id)?.names ?? []);
  return entryOf({ ...settings, pendingDomains: uncoveredDomains(domains, names).map(formatDomain) }, certificates);
}

/**
 * Settings of before with the certificates of now: what these cover of the site's domains is pending no more, and the rest
 * is, though it was covered then.
 */
async function renewedEntries(
  sql: Knex,
  settings: ReadonlyMap<string, object>,
  beside: Beside,
): Promise<Map<string, CompiledEntry | null>> {
  const published = new Map([...settings].map(([id, one]) => [id, { ...DEFAULT_HTTPS, pendingDomains: [], ...one }]));
  const certificates = await servedCertificates(sql, [...published.values()].flatMap(certificateIds));
  const sites = (await beside('site', [...settings.keys()])) as ReadonlyMap<string, { domains: Domain[] }>;
  return new Map(
    [...published].map(([id, one]) => {
      const domains = sites.get(id)?.domains ?? one.pendingDomains.flatMap((text) => parseDomain(text) ?? []);
      return [id, compileHttps(one, domains, certificates)];
    }),
  );
}

function entryOf(settings: PublishedHttps, certificates: Certificates): CompiledEntry | null {
  const served = certificateIds(settings).flatMap((id) => certificates.get(id) ?? []);
  if (served.length === 0) return null;
  const { clientCertificate: client, forceHttps, http3, pendingDomains } = settings;
  const message = create(SiteHttpsSchema, {
    certificates: served.map(({ id, fingerprint, name }) =>
      create(CertificateRefSchema, { certificateId: id, fingerprint: Uint8Array.from(fingerprint), name }),
    ),
    minimumVersion: VERSIONS[settings.minimumVersion],
    cipherProfile: PROFILES[settings.cipherProfile],
    http2: settings.http2,
    http3,
    ocspStapling: settings.ocspStapling,
    ...(forceHttps ? { forceHttps: redirectOf(settings) } : {}),
    pending: messages(pendingDomains),
    hstsMaxAge: settings.hstsMaxAge,
    hstsIncludeSubdomains: settings.hstsIncludeSubdomains,
    hstsPreload: settings.hstsPreload,
    ...(client.mode === 'off' ? {} : { clientCertificates: clientCertificatesOf(client, client.mode) }),
  });
  const features = [
    ...(client.mode === 'off' ? [] : ['client-certificates-v1']),
    ...(http3 ? ['http3-v1'] : []),
    'https-v1',
    ...(pendingDomains.length > 0 ? ['tls-pending-domains-v1'] : []),
  ];
  const refs = served.map(({ id }) => certificateRef(id));
  return { body: toBinary(SiteHttpsSchema, message), features, refs, settings };
}

function redirectOf({ redirectStatus, redirectPort, redirectExcludedDomains }: HttpsSettings) {
  return create(HttpsRedirectSchema, {
    status: redirectStatus,
    port: redirectPort,
    excluded: messages(redirectExcludedDomains),
  });
}

function clientCertificatesOf(
  { caPem, depth, forwardHeaders }: HttpsSettings['clientCertificate'],
  mode: keyof typeof MODES,
) {
  const authorities = readAuthorities(caPem, MAX_CLIENT_CAS);
  if (typeof authorities === 'string')
    throw new Error(`saved CA certificates for clients are not valid: ${authorities}`);
  const bytes = authorities.map((der) => Uint8Array.from(der));
  return create(ClientCertificatesSchema, { mode: MODES[mode], authorities: bytes, depth, forwardHeaders });
}

function messages(domains: readonly string[]): DomainMessage[] {
  return domains.flatMap((text) => {
    const domain = parseDomain(text);
    return domain ? [domainMessage(domain)] : [];
  });
}

/** Authorities by what they are called: their PEM tells people nothing. */
function shown({ clientCertificate: { caPem, ...client }, ...settings }: PublishedHttps): object {
  const authorities = caPem === '' ? [] : readAuthorities(caPem, MAX_CLIENT_CAS);
  const names =
    typeof authorities === 'string' ? [authorities] : authorities.map((der) => new X509Certificate(der).subject);
  return { ...settings, clientCertificate: { ...client, authorities: names } };
}

/** Certificates that are gone or have expired; the others stay until the end of a transaction. */
export async function missingCertificates(
  sql: Knex,
  _clusterId: string,
  references: readonly Reference[],
): Promise<Missing[]> {
  const { rows } = await sql.raw<{ rows: { id: string; label: string; valid: boolean }[] }>(
    `select id, name as label, coalesce(not_after > now(), false) as valid from certificate where id = any(?)
      order by id for share`,
    [[...new Set(references.map(({ name }) => name))] as never],
  );
  const found = new Map(rows.map((row) => [row.id, row]));
  return references.flatMap((reference) => {
    const { label = reference.name, valid = false } = found.get(reference.name) ?? {};
    return valid ? [] : [{ ...reference, type: 'certificate', label }];
  });
}
