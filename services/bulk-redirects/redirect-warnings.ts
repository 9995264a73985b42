// Warnings about bulk redirects: sources that clients never request, and redirects that lead back to themselves.
import type { Output } from '../../contract/procedure.ts';
import { REDIRECT_WARNINGS, type RedirectWarningCode } from '../../contract/redirect-warnings.ts';
import { type bulkRedirects, MAX_REDIRECT_WARNINGS } from '../../contract/resources/bulk-redirects.ts';
import { formatRedirectSource, sourceOfKey } from '../../contract/scalars/redirect-source.ts';
import type { BulkRedirectRow } from '../../models/sites/bulk-redirect.ts';
import { type RedirectedSite, redirectLoops } from './redirect-loops.ts';

type Warning = Output<typeof bulkRedirects.get>['warnings'][number];

/** Redirects named in the path of a loop. */
const SHOWN_STEPS = 5;

/** Warnings about these redirects; `fragments` are the keys of sources that were given with a literal `#`. */
export function redirectWarnings(
  rows: readonly BulkRedirectRow[],
  site: RedirectedSite,
  fragments: readonly string[] = [],
): Warning[] {
  return [
    ...fragments.map((key) => warning('fragment', key, { source: textOf(key) })),
    ...redirectLoops(rows, site).flatMap((loop) =>
      loop.map((key, index) =>
        warning('loops', key, { through: throughOf([...loop.slice(index), ...loop.slice(0, index)]) }),
      ),
    ),
  ].slice(0, MAX_REDIRECT_WARNINGS);
}

function warning(code: RedirectWarningCode, key: string, params: Record<string, string>): Warning {
  const message = REDIRECT_WARNINGS[code].replace(/\{([a-z]+)\}/g, (_, name: string) => params[name] ?? '');
  return { source: textOf(key), code, params, message };
}

/** The way from the first source back to it; a long one is cut in the middle. */
function throughOf(loop: readonly string[]): string {
  const shown = loop.slice(0, SHOWN_STEPS).map(textOf);
  return [...shown, ...(loop.length > SHOWN_STEPS ? ['…'] : []), textOf(loop[0]!)].join(' → ');
}

function textOf(key: string): string {
  return formatRedirectSource(sourceOfKey(key));
}
