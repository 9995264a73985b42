import { formatList } from '@/shared/i18n/format.ts';

const SHOWN = 3;

/** The first of the names, and how many there are. */
export function namesText(names: readonly string[]): string {
  const first = formatList(names.slice(0, SHOWN));
  return names.length > SHOWN ? `${first} … (${names.length})` : first;
}

/** What a distinguished name calls its owner: the common name, where it has one. */
export function ownerName(distinguished: string): string {
  return /(?:^|, )CN=([^,]+)/.exec(distinguished)?.[1] ?? distinguished;
}
