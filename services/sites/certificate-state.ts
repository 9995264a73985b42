// What certificates do for a site, in one word.
import type { Output } from '../../contract/procedure.ts';
import type { sites } from '../../contract/resources/sites.ts';
import { partlyCoveredDomains, uncoveredDomains } from '../../contract/scalars/certificate-coverage.ts';
import { formatDomain } from '../../contract/scalars/domain.ts';
import { type CertificateRow, certificateForSite, certificatesById } from '../../models/certificates/certificate.ts';
import type { SiteRow } from '../../models/sites/site.ts';
import { certificateIds } from '../../models/sites/site-https.entry.ts';
import { readSiteHttps } from '../../models/sites/site-https.ts';
import type { Runtime } from '../../runtime/runtime.ts';

type State = Output<typeof sites.launch>['certificate'];

/**
 * | State     | When                                                                     |
 * |-----------|--------------------------------------------------------------------------|
 * | none      | the site has none, and none was asked for it                             |
 * | covered   | certificates that are valid cover every domain                           |
 * | expired   | they do not, and one that has expired would cover some of the rest       |
 * | issuing   | they do not, and the rest was asked for                                  |
 * | failed    | the last try for the rest failed, and none of the certificates is valid  |
 * | uncovered | they do not: nobody was asked, or the last try failed                    |
 */
export async function certificateState(sql: Runtime['pools']['api'], site: SiteRow, now: Date): Promise<State> {
  const { https } = (await readSiteHttps(sql, site.id))!;
  const ids = certificateIds(https);
  const coming = await certificateForSite(sql, site.id);
  const found = await certificatesById(sql, ids);
  const bound = ids.flatMap((id) => found.get(id) ?? []);
  const [first = coming] = bound;
  if (!first) return { state: 'none', id: null, name: null, uncovered: [], partly: [], error: null };
  const valid = bound.filter(({ notAfter }) => notAfter !== null && notAfter > now);
  const open = uncoveredDomains(site.domains, namesOf(valid));
  const uncovered = open.map(formatDomain);
  const partly = partlyCoveredDomains(site.domains)
    .filter((domain) => !open.includes(domain))
    .map(formatDomain);
  const told = (state: State['state'], { id, name }: CertificateRow, error: string | null = null): State => ({
    state,
    id,
    name,
    uncovered,
    partly,
    error,
  });
  if (open.length === 0) return told('covered', first);
  const covers = (names: readonly string[]) => uncoveredDomains(open, names).length < open.length;
  const expired = bound.find((one) => one.notAfter !== null && one.notAfter <= now && covers(one.names));
  if (expired) return told('expired', expired, expired.lastError);
  const asked = [...bound, ...(coming ? [coming] : [])].find(
    ({ autoRenew, fingerprint, requestedNames }) => (autoRenew || fingerprint === null) && covers(requestedNames ?? []),
  );
  if (!asked) return told('uncovered', first);
  if (asked.status !== 'error') return told('issuing', asked);
  return told(valid.length === 0 ? 'failed' : 'uncovered', asked, asked.lastError);
}

function namesOf(certificates: readonly CertificateRow[]): string[] {
  return certificates.flatMap(({ names }) => names);
}
