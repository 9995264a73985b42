// Which rules that exempt hold for the spelling of a request's path.
import type { FieldName } from '../../../contract/expression/fields.ts';
import { type Condition, walk } from '../../../contract/expression/tree.ts';
import { urlDecodePath } from '../evaluate/functions.ts';
import { isPlain } from '../evaluate/normal-path.ts';
import { canonicalPath } from '../evaluate/request-values.ts';
import type { Exchange } from './exchange.ts';

const OF_CURRENT: readonly FieldName[] = [
  'http.request.uri.path',
  'http.request.uri.path.extension',
  'raw.http.request.uri.path',
];
const OF_ASKED: readonly FieldName[] = ['http.request.uri', 'http.request.full_uri'];

/**
 * Whether a rule with this condition may exempt the request: it reads no path, or one that every origin reads alike. Rules
 * that deny hold for every spelling.
 */
export function mayExempt({ path, target, request }: Exchange, condition: Condition): boolean {
  const read = new Set<FieldName>();
  walk(condition, (node) => {
    if (node.op === 'field') read.add(node.field);
  });
  const asked = canonicalPath(urlDecodePath(request.uri.split('?', 1)[0]!));
  return (
    (!OF_CURRENT.some((field) => read.has(field)) || isPlain(target, path)) &&
    (!OF_ASKED.some((field) => read.has(field)) || isPlain(request.uri, asked))
  );
}

/** Whether an override of a setting makes less of the protection than the site asks for. */
export function isExemption(name: string, value: unknown): boolean {
  return name === 'ccMaxLevel' || ((name === 'underAttack' || name === 'ccEnabled') && value === false);
}
