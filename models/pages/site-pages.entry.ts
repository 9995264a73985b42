// Kind "site-pages": error pages of a site. Without an entry visitors get the pages of the node.
import { create, toBinary } from '@bufbuild/protobuf';
import {
  DEFAULT_PAGES,
  type ErrorPage,
  type PageStatus,
  type PagesOfSite,
} from '../../contract/resources/error-pages.ts';
import { ErrorPageSchema, SitePagesSchema } from '../../proto/gen/svc/config/v1/pages_pb.js';
import type { CompiledEntry } from '../config/entry-kind.ts';
import { compileEach, siteSettingsKind } from '../config/site-settings-kind.ts';
import { capabilitiesOfTemplates, shownTemplate } from './template.ts';

export const SITE_PAGES_KIND = 'site-pages';

const SAVED = { table: 'site_pages', defaults: DEFAULT_PAGES };

export const sitePagesKind = siteSettingsKind<PagesOfSite>(SITE_PAGES_KIND, SAVED, {
  compilerVersion: 1,
  // Thirteen templates.
  maxBodyBytes: 1024 * 1024,
  shown: (settings) => shownPages(settings as PagesOfSite),
  compile: compileEach(SAVED, compilePages),
});

/** The entry of a site's settings; null where no page is set. */
export function compilePages(settings: PagesOfSite): CompiledEntry | null {
  const { pages, interceptOriginErrors } = settings;
  if (pages.length === 0) return null;
  const message = create(SitePagesSchema, { pages: pages.map(pageMessage), interceptOriginErrors });
  return {
    body: toBinary(SitePagesSchema, message),
    features: capabilitiesOfTemplates(pages.map(({ template = '' }) => template)),
    refs: [],
    settings,
  };
}

function pageMessage({ status, template, redirectUrl, responseStatus }: ErrorPage) {
  const page =
    redirectUrl === undefined
      ? ({ case: 'template', value: template! } as const)
      : ({ case: 'redirectUrl', value: redirectUrl } as const);
  return create(ErrorPageSchema, { status: numberOf(status), page, responseStatus });
}

function numberOf(status: PageStatus): number {
  return typeof status === 'number' ? status : Number(status[0]);
}

/** By their status. */
function shownPages({ pages, interceptOriginErrors }: PagesOfSite): object {
  const byStatus = pages.map(({ status, template, ...rest }) => [
    status,
    { ...(template === undefined ? {} : { template: shownTemplate(template) }), ...rest },
  ]);
  return { interceptOriginErrors, pages: Object.fromEntries(byStatus) };
}
