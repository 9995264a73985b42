// Turns what a client sent into what a site is: canonical, complete, and checked as far as the schema cannot.
import { badField, fail } from '../../contract/errors.ts';
import type { Input } from '../../contract/procedure.ts';
import {
  type ContentSettings,
  DEFAULT_CONTENT_SETTINGS,
  DEFAULT_ORIGIN_SETTINGS,
  type Origin,
  type OriginSettings,
} from '../../contract/resources/site-origins.ts';
import { MAX_PATTERN_DOMAINS, MAX_SITE_NAME, type sites } from '../../contract/resources/sites.ts';
import { type Domain, formatDomain, parseDomain } from '../../contract/scalars/domain.ts';
import { normaliseHostHeader } from '../../contract/scalars/host-header.ts';
import { normaliseHostName } from '../../contract/scalars/host-name.ts';
import { normaliseOriginAddress } from '../../contract/scalars/origin-address.ts';
import type { SiteContent } from '../../models/sites/site.ts';
import { USUAL_PORTS } from '../../models/sites/site-ports.ts';
import { changedHealthCheck } from './health-check.ts';
import { changedPorts } from './site-ports.ts';

type CreateInput = Input<typeof sites.create>;
type UpdateInput = Input<typeof sites.update>;
type OriginInput = CreateInput['origins'][number];

/** Content of a new site. Throws DOMAIN_INVALID, ORIGIN_HOST_HEADER_INVALID, ORIGIN_GRPC_REQUIRES_HTTP2, BAD_REQUEST. */
export function newContent(input: CreateInput): SiteContent {
  const domains = parseDomains(input.domains);
  return {
    name: input.name?.trim() ?? defaultName(domains),
    domains,
    origins: parseOrigins(input.origins),
    originSettings: withOrigins(DEFAULT_ORIGIN_SETTINGS, input.originSettings),
    contentSettings: withContent(DEFAULT_CONTENT_SETTINGS, input.contentSettings),
    ports: changedPorts(USUAL_PORTS, input.ports),
  };
}

/** Content after an update; what the input omits stays. Throws as {@link newContent}. */
export function changedContent(before: SiteContent, input: UpdateInput): SiteContent {
  return {
    name: input.name?.trim() ?? before.name,
    domains: input.domains ? parseDomains(input.domains) : before.domains,
    origins: input.origins ? parseOrigins(input.origins) : before.origins,
    originSettings: changedOriginSettings(before.originSettings, input.originSettings),
    contentSettings: withContent(before.contentSettings, input.contentSettings),
    ports: changedPorts(before.ports, input.ports),
  };
}

/** Given settings replace the saved ones as a whole, but those that the contract names keep their values. */
function changedOriginSettings(before: OriginSettings, given: UpdateInput['originSettings']): OriginSettings {
  if (!given) return before;
  const { tries, statusRetry, sessionAffinity, activeHealthCheck, protocol, grpc } = before;
  const kept = { tries, statusRetry, sessionAffinity, activeHealthCheck, protocol, grpc };
  return withOrigins({ ...DEFAULT_ORIGIN_SETTINGS, ...kept }, given);
}

function withOrigins(before: OriginSettings, given: CreateInput['originSettings']): OriginSettings {
  const sessionAffinity = { ...before.sessionAffinity, ...given?.sessionAffinity };
  const activeHealthCheck = changedHealthCheck(before.activeHealthCheck, given?.activeHealthCheck);
  const settings = { ...before, ...given, sessionAffinity, activeHealthCheck };
  if (settings.grpc && settings.protocol !== 'http2') {
    fail('ORIGIN_GRPC_REQUIRES_HTTP2', { path: '/originSettings/grpc' });
  }
  return settings;
}

function withContent(before: ContentSettings, given: CreateInput['contentSettings']): ContentSettings {
  return { ...before, ...given, charset: { ...before.charset, ...given?.charset } };
}

function defaultName(domains: readonly Domain[]): string {
  return formatDomain(domains[0]!).slice(0, MAX_SITE_NAME);
}

function parseDomains(texts: readonly string[]): Domain[] {
  const byText = new Map<string, Domain>();
  for (const [index, text] of texts.entries()) {
    const domain = parseDomain(text) ?? fail('DOMAIN_INVALID', { domain: text, path: `/domains/${index}` });
    byText.set(formatDomain(domain), domain);
  }
  const domains = [...byText.values()];
  const patterns = domains.filter(({ form }) => form === 'pattern').length;
  if (patterns > MAX_PATTERN_DOMAINS) badField('/domains', 'maxPatterns', { limit: MAX_PATTERN_DOMAINS });
  return domains;
}

function parseOrigins(inputs: readonly OriginInput[]): Origin[] {
  const origins = inputs.map((input, index) => parseOrigin(input, `/origins/${index}`));
  if (!origins.some(({ group }) => group === '')) badField('/origins', 'defaultGroup');
  if (origins.every(({ backup }) => backup)) badField('/origins', 'onlyBackups');
  return origins;
}

/** An origin as it is saved. Throws BAD_REQUEST and ORIGIN_HOST_HEADER_INVALID, naming the field below `at`. */
export function parseOrigin(input: OriginInput, at: string): Origin {
  const { scheme = 'http', weight = 1, backup = false, group = '' } = input;
  const address = normaliseOriginAddress(input.address) ?? badField(`${at}/address`, 'address');
  const sni = input.sni ? (normaliseHostName(input.sni) ?? badField(`${at}/sni`, 'hostName')) : '';
  const given = input.hostHeader ?? '';
  const hostHeader =
    normaliseHostHeader(given) ?? fail('ORIGIN_HOST_HEADER_INVALID', { hostHeader: given, path: `${at}/hostHeader` });
  const port = input.port ?? (scheme === 'https' ? 443 : 80);
  return { address, scheme, port, weight, backup, hostHeader, sni, group };
}
