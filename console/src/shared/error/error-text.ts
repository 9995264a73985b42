// What went wrong, in the person's language: by code and keyword, never by the server's text unless it is all there is.
import type { Issue } from '@contract/errors.ts';
import type { CallError } from '@/shared/api/call-error.ts';
import { formatList, hasMessage } from '@/shared/i18n/format.ts';
import { i18n } from '@/shared/i18n/i18n.ts';

/** The message of an error's code with its parameters; lists become words, and so do codes of what is wrong. */
export function errorText(error: Pick<CallError, 'code' | 'data' | 'message' | 'status'>): string {
  const key = `shared.errors.${error.code}`;
  if (hasMessage(key)) return i18n.global.t(key, { ...wordsOf(error.data), ...faultOf(error.data) });
  return i18n.global.t('shared.errors.unknown', { status: error.status, message: error.message });
}

/** What one field needs: "At least 12 characters". */
export function issueText(issue: Pick<Issue, 'keyword' | 'params'>): string {
  const key = `shared.keywords.${issue.keyword}`;
  return i18n.global.t(hasMessage(key) ? key : 'shared.keywords.unknown', wordsOf(issue.params));
}

/** What `reason` says, where it is a code that has words. */
function faultOf({ reason }: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const key = `shared.faults.${reason}`;
  return typeof reason === 'string' && hasMessage(key) ? { reason: i18n.global.t(key) } : {};
}

function wordsOf(data: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(data).map(([name, value]) => [name, Array.isArray(value) ? formatList(value.map(String)) : value]),
  );
}
