// URLs as tasks and purges take them.
import { normaliseHostName } from '../../contract/scalars/host-name.ts';

export interface TaskUrl {
  /** As it was normalized. */
  text: string;
  host: string;
  path: string;
  /** Without the question mark. */
  query: string;
}

/** Null for a text that is no URL over HTTP of a host. */
export function taskUrl(text: string): TaskUrl | null {
  const url = URL.parse(text.trim());
  if (!url || (url.protocol !== 'http:' && url.protocol !== 'https:') || url.username !== '' || url.password !== '')
    return null;
  const host = normaliseHostName(url.hostname);
  if (host === null) return null;
  url.hash = '';
  return { text: url.href, host, path: url.pathname, query: url.search.slice(1) };
}
