// Bulk redirects of a site as a list that is edited: what is wrong with one, what differs between two lists, and how two
// people's edits come together. A source stands for its redirect. Pure.
import { utf8 } from '../../../../../contract/expression/bytes.ts';
import { isUsable } from '../../../../../contract/expression/results.ts';
import {
  formatRedirectSource,
  parseRedirectSource,
  upperCaseHost,
} from '../../../../../contract/scalars/redirect-source.ts';
import { same } from '../../../shared/forms/paths.ts';

export const STATUSES = [301, 302, 307, 308] as const;
export type Status = (typeof STATUSES)[number];
export const MAX_TARGET_BYTES = 1024;

export interface Redirect {
  source: string;
  target: string;
  statusCode: Status;
  preserveQuery: boolean;
}

export const newRedirect = (): Redirect => ({ source: '', target: '', statusCode: 301, preserveQuery: false });

/** In the form in which it is kept; null when it is none. */
export function canonicalSource(text: string): string | null {
  const source = parseRedirectSource(text.trim());
  return source ? formatRedirectSource(source) : null;
}

/** What can be wrong with a redirect; names its words. */
export type RedirectFault = 'source' | 'hostCase' | 'sameSource' | 'target' | 'targetLong';

/** What is wrong with a redirect by itself, or with its source among those of others. */
export function faultsOf({ source, target }: Redirect, others: ReadonlySet<string>): RedirectFault[] {
  const canonical = canonicalSource(source);
  const faults: RedirectFault[] = [];
  if (canonical === null) faults.push(upperCaseHost(source.trim()) === null ? 'source' : 'hostCase');
  if (canonical !== null && others.has(canonical)) faults.push('sameSource');
  if (utf8(target).length > MAX_TARGET_BYTES) faults.push('targetLong');
  else if (!isUsable('redirect', target)) faults.push('target');
  return faults;
}

export type RedirectChange =
  | { what: 'added'; redirect: Redirect }
  | { what: 'changed'; before: Redirect; redirect: Redirect }
  | { what: 'removed'; redirect: Redirect };

const bySource = (list: readonly Redirect[]) => new Map(list.map((redirect) => [redirect.source, redirect]));

/** What differs, by source: added and changed in the order of the list, then what was removed. */
export function redirectsDiff(before: readonly Redirect[], after: readonly Redirect[]): RedirectChange[] {
  const [was, now] = [bySource(before), bySource(after)];
  const changes = after.flatMap((redirect): RedirectChange[] => {
    const old = was.get(redirect.source);
    if (!old) return [{ what: 'added', redirect }];
    return same(old, redirect) ? [] : [{ what: 'changed', before: old, redirect }];
  });
  const gone = before.filter(({ source }) => !now.has(source));
  return [...changes, ...gone.map((redirect) => ({ what: 'removed', redirect }) as const)];
}

export interface RedirectConflict {
  source: string;
  mine: Redirect | null;
  theirs: Redirect | null;
}

/** My edits of `base` on top of theirs; of what both changed, mine stays until a person chooses. */
export function mergeRedirects(
  base: readonly Redirect[],
  mine: readonly Redirect[],
  theirs: readonly Redirect[],
): { redirects: Redirect[]; conflicts: RedirectConflict[] } {
  const [was, others] = [bySource(base), bySource(theirs)];
  const merged = new Map(others);
  const conflicts: RedirectConflict[] = [];
  for (const change of redirectsDiff(base, mine)) {
    const { source } = change.redirect;
    const my = change.what === 'removed' ? null : change.redirect;
    const their = others.get(source) ?? null;
    if (!same(was.get(source) ?? null, their) && !same(my, their)) conflicts.push({ source, mine: my, theirs: their });
    put(merged, source, my);
  }
  return { redirects: [...merged.values()], conflicts };
}

/** With theirs in place of mine for these sources. */
export function withTheirs(list: readonly Redirect[], conflicts: readonly RedirectConflict[]): Redirect[] {
  const merged = bySource(list);
  for (const { source, theirs } of conflicts) put(merged, source, theirs);
  return [...merged.values()];
}

function put(list: Map<string, Redirect>, source: string, redirect: Redirect | null): void {
  if (redirect) list.set(source, redirect);
  else list.delete(source);
}

/** Those in whose source or target a text is, whatever the case of its letters. */
export function found(list: readonly Redirect[], text: string): readonly Redirect[] {
  const typed = text.trim().toLowerCase();
  if (typed === '') return list;
  return list.filter(
    ({ source, target }) => source.toLowerCase().includes(typed) || target.toLowerCase().includes(typed),
  );
}
