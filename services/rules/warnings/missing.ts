// Fields whose absence makes a condition hold that is written as an exception.
import type { FieldName } from '../../../contract/expression/fields.ts';
import { formatField } from '../../../contract/expression/format.ts';
import { type Condition, type FieldNode, type Tree, walk } from '../../../contract/expression/tree.ts';
import { evaluateCondition } from '../evaluate/evaluate.ts';

/** Fields that many requests do not have. */
const MAY_BE_MISSING: ReadonlySet<FieldName> = new Set([
  'http.request.headers',
  'http.request.cookies',
  'http.request.uri.args',
  'http.referer',
  'http.user_agent',
  'tls.ja4',
  'ip.geoip.country',
  'ip.geoip.subdivision',
  'ip.geoip.asnum',
  'ip.geoip.as_name',
  'http.response.headers',
  'http.response.content_type.media_type',
  'http.response.cache_status',
]);

/** As they are written, each once. What is compared with "" or 0 somewhere is meant to be as it is. */
export function missingMatches(condition: Condition): string[] {
  const found = new Set<string>();
  collect(condition, false, found);
  const meant = comparedWithNothing(condition);
  return [...found].filter((field) => !meant.has(field));
}

function collect(node: Condition, negated: boolean, found: Set<string>): void {
  switch (node.op) {
    case 'and':
    case 'or':
      for (const child of node.children) collect(child, negated, found);
      return;
    case 'not':
      collect(node.child, !negated, found);
      return;
    default: {
      // ne is the opposite of eq.
      if (negated === (node.op === 'ne')) return;
      const field = onlyField(node);
      if (!field || !MAY_BE_MISSING.has(field.field)) return;
      const nothing = field.type === 'number' ? 0 : '';
      const holds = evaluateCondition(node, { field: () => nothing, inList: () => false });
      if (holds.ok && holds.value !== negated) found.add(formatField(field));
    }
  }
}

/** The field of a condition that reads one and no more. */
function onlyField(node: Tree): FieldNode | null {
  const fields: FieldNode[] = [];
  walk(node, (each) => {
    if (each.op === 'field') fields.push(each);
  });
  return fields.length === 1 ? fields[0]! : null;
}

function comparedWithNothing(condition: Condition): ReadonlySet<string> {
  const fields = new Set<string>();
  walk(condition, (node) => {
    if (node.op !== 'eq' && node.op !== 'ne' && node.op !== 'in') return;
    const values = node.op === 'in' ? node.values : [node.value];
    if (node.operand.op === 'field' && values.some((value) => value === '' || value === 0)) {
      fields.add(formatField(node.operand));
    }
  });
  return fields;
}
