// The form of a cache rule: prefixes and exact paths and extensions, and the condition that says the same.
import { formatTree } from './format.ts';
import type { CallNode, Condition, FieldNode, SetNode, TextNode } from './tree.ts';

export interface CacheBuilder {
  readonly pathPrefixes: readonly string[];
  readonly paths: readonly string[];
  /** Without dot. */
  readonly extensions: readonly string[];
}

export const MAX_PATH_PREFIXES = 32;
export const MAX_PATHS = 32;
export const MAX_EXTENSIONS = 64;

const PATH = 'http.request.uri.path';
const EXTENSION = 'http.request.uri.path.extension';
const EXTENSION_PATTERN = /^[a-z0-9]{1,16}$/;

/** The condition that a form stands for, in canonical text; lists that are too long make one that is no form. */
export function cacheConditionOf({ pathPrefixes, paths, extensions }: CacheBuilder): string {
  const field = (name: FieldNode['field']): FieldNode => ({
    ...NOWHERE,
    op: 'field',
    field: name,
    name: null,
    type: 'string',
  });
  const parts: Condition[] = [];
  const prefixes = pathPrefixes.map(
    (value): CallNode => ({
      ...NOWHERE,
      op: 'call',
      function: 'starts_with',
      type: 'boolean',
      args: [field(PATH), { ...NOWHERE, op: 'text', value }],
    }),
  );
  if (prefixes.length > 0) parts.push(joined('or', prefixes));
  if (paths.length > 0) parts.push({ ...NOWHERE, op: 'in', operand: field(PATH), values: paths });
  if (extensions.length > 0) parts.push({ ...NOWHERE, op: 'in', operand: field(EXTENSION), values: extensions });
  return formatTree(joined('and', parts));
}

const NOWHERE = { at: 0, end: 0 };

function joined(op: 'and' | 'or', children: readonly Condition[]): Condition {
  if (children.length === 0) return { ...NOWHERE, op: 'literal', value: true };
  return children.length === 1 ? children[0]! : { ...NOWHERE, op, children };
}

/** The form that a condition is the text of, or null when no form can show it. */
export function cacheBuilderOf(tree: Condition): CacheBuilder | null {
  if (tree.op === 'literal') return tree.value ? { pathPrefixes: [], paths: [], extensions: [] } : null;
  const builder: Partial<Record<keyof CacheBuilder, readonly string[]>> = {};
  for (const part of tree.op === 'and' ? tree.children : [tree]) {
    const read = partOf(part);
    if (!read || builder[read.list]) return null;
    builder[read.list] = read.values;
  }
  return { pathPrefixes: [], paths: [], extensions: [], ...builder };
}

function partOf(node: Condition): { list: keyof CacheBuilder; values: readonly string[] } | null {
  if (node.op === 'in') return setOf(node);
  const values = (node.op === 'or' ? node.children : [node]).map(prefixOf);
  const distinct = new Set(values).size === values.length;
  if (values.length > MAX_PATH_PREFIXES || !distinct || values.includes(null)) return null;
  return { list: 'pathPrefixes', values: values as string[] };
}

function prefixOf(node: Condition): string | null {
  if (node.op !== 'call' || node.function !== 'starts_with') return null;
  const [subject, prefix] = node.args;
  return subject?.op === 'field' && subject.field === PATH && prefix?.op === 'text' ? (prefix as TextNode).value : null;
}

function setOf({ operand, values }: SetNode): { list: keyof CacheBuilder; values: readonly string[] } | null {
  const texts = values as readonly string[];
  if (operand.op !== 'field') return null;
  if (operand.field === PATH) return texts.length <= MAX_PATHS ? { list: 'paths', values: texts } : null;
  if (operand.field !== EXTENSION || texts.length > MAX_EXTENSIONS) return null;
  return texts.every((text) => EXTENSION_PATTERN.test(text)) ? { list: 'extensions', values: texts } : null;
}
