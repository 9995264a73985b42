// Turns the pages that a client sent into what is saved: sorted, and nothing that a node would refuse.
import { badField, fail } from '../../contract/errors.ts';
import { fitsBytes } from '../../contract/expression/bytes.ts';
import { isFixedTarget } from '../../contract/expression/results.ts';
import type { Input } from '../../contract/procedure.ts';
import {
  type ErrorPage,
  type errorPages,
  MAX_TEMPLATE_BYTES,
  PAGE_STATUSES,
  type PageStatus,
  type PagesOfSite,
} from '../../contract/resources/error-pages.ts';
import {
  DEFAULT_MAINTENANCE,
  MAINTENANCE_STATUS,
  MAX_PREFIX_BYTES,
  type Maintenance,
  type maintenance,
} from '../../contract/resources/maintenance.ts';
import { normaliseCidrs } from '../../contract/scalars/cidr.ts';

type GivenPages = Input<typeof errorPages.update>;
type GivenPage = GivenPages['pages'][number];

/** Throws ERROR_PAGE_TOO_LARGE, and BAD_REQUEST naming the field. */
export function givenPages({ pages, interceptOriginErrors = false }: GivenPages): PagesOfSite {
  const byStatus = new Map<PageStatus, ErrorPage>();
  for (const [index, page] of pages.entries()) {
    if (byStatus.has(page.status)) badField(`/pages/${index}/status`, 'repeated');
    byStatus.set(page.status, givenPage(page, `/pages/${index}`));
  }
  return { pages: PAGE_STATUSES.flatMap((status) => byStatus.get(status) ?? []), interceptOriginErrors };
}

function givenPage({ status, template, redirectUrl, responseStatus = 0 }: GivenPage, at: string): ErrorPage {
  if (template === undefined) {
    if (redirectUrl === undefined) badField(`${at}/template`, 'required');
    if (!isRedirect(redirectUrl)) badField(`${at}/redirectUrl`, 'redirectTarget');
    if (responseStatus !== 0) badField(`${at}/responseStatus`, 'forbidden');
    return { status, redirectUrl, responseStatus };
  }
  if (redirectUrl !== undefined) badField(`${at}/redirectUrl`, 'forbidden');
  assertTemplate(template, status, `${at}/template`);
  return { status, template, responseStatus };
}

/** Also with the values of a request in their places. */
function isRedirect(url: string): boolean {
  return isFixedTarget('redirect', url.replaceAll('{{status}}', '500').replaceAll('{{request_id}}', 'id'));
}

/** Throws ERROR_PAGE_TOO_LARGE naming the field. */
export function assertTemplate(template: string, status: PageStatus, path: string): void {
  if (fitsBytes(template, MAX_TEMPLATE_BYTES)) return;
  fail('ERROR_PAGE_TOO_LARGE', { status, limit: MAX_TEMPLATE_BYTES, path });
}

/** Throws ERROR_PAGE_TOO_LARGE, and BAD_REQUEST naming the field. */
export function givenMaintenance(given: Input<typeof maintenance.update>): Maintenance {
  const { id: _id, expectedUpdatedAt: _expected, ...fields } = given;
  const settings: Maintenance = { ...DEFAULT_MAINTENANCE, ...fields };
  assertTemplate(settings.template, MAINTENANCE_STATUS, '/template');
  const { cidrs, invalid } = normaliseCidrs(settings.allowedCidrs);
  if (invalid !== null) badField(`/allowedCidrs/${invalid}`, 'cidr');
  const long = settings.allowedPathPrefixes.findIndex((prefix) => !fitsBytes(prefix, MAX_PREFIX_BYTES));
  if (long >= 0) badField(`/allowedPathPrefixes/${long}`, 'maxBytes', { limit: MAX_PREFIX_BYTES });
  return { ...settings, allowedCidrs: cidrs, allowedPathPrefixes: [...new Set(settings.allowedPathPrefixes)] };
}
