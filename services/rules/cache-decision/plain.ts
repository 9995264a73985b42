// Requests that go past the cache: the key would not say everything of them.
import type { CacheExplanation, CacheReason } from '../../../contract/resources/cache-explain.ts';
import { normalTarget } from '../evaluate/normal-path.ts';
import type { RunRequest } from '../run/request.ts';
import { linesOf } from './header-lines.ts';

export interface Past {
  readonly why: CacheReason;
  readonly decidedBy: NonNullable<CacheExplanation['decidedBy']>;
}

const PRECONDITIONS = ['If-Match', 'If-Unmodified-Since'];
/** Origins that honour them take the request for another. */
const OVERRIDES = ['X-HTTP-Method-Override', 'X-HTTP-Method', 'X-Method-Override', 'X-Original-URL', 'X-Rewrite-URL'];
const OF_BODY = ['Content-Length', 'Transfer-Encoding'];

/** Null for a request that the cache is about. */
export function pastCache({ method, uri, headers, bodySize, ambiguousPath }: RunRequest): Past | null {
  const by = (why: CacheReason, name: string, value: string): Past => ({
    why,
    decidedBy: { part: 'request', name, value },
  });
  if (method !== 'GET' && method !== 'HEAD') return by('method', 'method', method);
  const header = (names: readonly string[], counts: (value: string) => boolean = () => true) => {
    for (const name of names) {
      const value = linesOf(headers, name.toLowerCase())?.find(counts);
      if (value !== undefined) return { name, value };
    }
    return null;
  };
  const body = header(OF_BODY, (value) => !/^0+$/.test(value));
  if (body) return by('body', body.name, body.value);
  if ((bodySize ?? 0) > 0) return by('body', 'bodySize', String(bodySize));
  const condition = header(PRECONDITIONS);
  if (condition) return by('precondition', condition.name, condition.value);
  const mark = uri.indexOf('?');
  const path = mark < 0 ? uri : uri.slice(0, mark);
  if (ambiguousPath || normalTarget(path) !== path) return by('path', 'path', path);
  if (mark === uri.length - 1) return by('empty_query', 'query', '?');
  const override = header(OVERRIDES);
  if (override) return by('method_override', override.name, override.value);
  const connection = header(['Connection'], (value) => !/^(?:keep-alive|close)$/i.test(value));
  return connection && by('connection', connection.name, connection.value);
}
