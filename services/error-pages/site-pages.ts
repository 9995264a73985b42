// Error pages of a site, read and replaced.
import { isDeepStrictEqual } from 'node:util';
import type { Input, Output } from '../../contract/procedure.ts';
import {
  DEFAULT_PAGES,
  type errorPages,
  type PageStatus,
  type PagesOfSite,
} from '../../contract/resources/error-pages.ts';
import { getSiteSetting, replaceSiteSetting, type SettingOfSites } from '../../mixins/site-setting.ts';
import { compilePages, SITE_PAGES_KIND } from '../../models/pages/site-pages.entry.ts';
import type { Call } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { givenPages } from './given-pages.ts';

const SETTING: SettingOfSites<PagesOfSite> = {
  table: 'site_pages',
  defaults: DEFAULT_PAGES,
  kind: SITE_PAGES_KIND,
  compile: compilePages,
  reason: 'site_error_pages_updated',
  audit: 'site.error_pages_update',
  told: (before, after) => ({
    statuses: changedStatuses(before, after),
    interceptOriginErrors: after.interceptOriginErrors,
  }),
};

export function getErrorPages(
  runtime: Runtime,
  { id }: Input<typeof errorPages.get>,
): Promise<Output<typeof errorPages.get>> {
  return getSiteSetting(runtime, SETTING, id);
}

/** Throws the contract's errors. */
export function updateErrorPages(
  runtime: Runtime,
  input: Input<typeof errorPages.update>,
  call: Call,
): Promise<Output<typeof errorPages.update>> {
  const { id, expectedUpdatedAt } = input;
  return replaceSiteSetting(runtime, call, SETTING, { id, settings: givenPages(input), expectedUpdatedAt });
}

function changedStatuses(before: PagesOfSite, after: PagesOfSite): PageStatus[] {
  const pageOf = (settings: PagesOfSite, status: PageStatus) => settings.pages.find((page) => page.status === status);
  const all = new Set([...before.pages, ...after.pages].map(({ status }) => status));
  return [...all].filter((status) => !isDeepStrictEqual(pageOf(before, status), pageOf(after, status)));
}
