// Saved settings that no node runs, of the page's object: the page's note shows them, and each form says which of them its
// save publishes as well.
import type { Output } from '@contract/procedure.ts';
import type { unpublishedOfSite } from '@contract/resources/unpublished.ts';
import { type InjectionKey, inject, type Ref } from 'vue';
import { fieldText } from '@/shared/contract/field-text.ts';
import { formatList, formatNumber } from '@/shared/i18n/format.ts';

export type Unpublished = Output<typeof unpublishedOfSite.unpublished>;

/** What forms of the page know of the settings beside their own. */
export interface SaveContext {
  unpublished: Ref<Unpublished | undefined>;
  /** Whether errors after a save undo it; undefined: not known. */
  automaticUndo: Ref<boolean | undefined>;
  enableAutomaticUndo(): Promise<void>;
}

export const SAVE_CONTEXT: InjectionKey<SaveContext> = Symbol('save context');

/** Null outside of such a page. */
export function useSaveContext(): SaveContext | null {
  return inject(SAVE_CONTEXT, null);
}

/** Kinds of settings that a procedure publishes, by its path. */
const PUBLISHED: Readonly<Record<string, readonly string[]>> = {
  'sites/update': ['site', 'site-requests', 'site-content', 'site-rules', 'site-cache'],
  'sites/https/set': ['site-https', 'site-compression'],
  'sites/waf/update': ['site-waf'],
  'sites/errorPages/update': ['site-pages'],
  'sites/maintenance/update': ['site-maintenance'],
  'sites/logs/settings/set': ['site-logs'],
  'sites/rules/set': ['site-rules'],
  'sites/bulkRedirects/set': ['bulk-redirects'],
  'protection/update': ['protection'],
  'clusters/clientIp/set': ['client-ip'],
  'clusters/unknownHosts/set': ['unknown-hosts'],
  'clusters/headerLimit/set': ['header-limit'],
  'clusters/cache/set': ['cache-zone'],
};
const NAMED = 5;

/** The fields that a save by the procedure publishes as well, in words; empty: none. */
export function alsoPublished(unpublished: Unpublished | undefined, procedure: string | undefined): string {
  const kinds = PUBLISHED[procedure?.replaceAll('.', '/') ?? ''] ?? [];
  const paths = (unpublished?.changes ?? [])
    .filter(({ kind }) => kinds.includes(kind))
    .flatMap(({ fields }) => fields.map(({ path }) => fieldText(path)));
  const more = paths.length - NAMED;
  return formatList(more > 0 ? [...paths.slice(0, NAMED), `+${formatNumber(more)}`] : paths);
}
