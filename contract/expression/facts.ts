// What a tree needs of nodes, of lists and of requests. Derived from the tree, never from the text.
import { EXPRESSION_CAPABILITIES, type ExpressionCapability } from './capabilities.ts';
import { FIELDS } from './fields.ts';
import { formatField } from './format.ts';
import { FUNCTIONS } from './functions.ts';
import { OPERATORS } from './operators.ts';
import { type Argument, type Tree, walk } from './tree.ts';

export interface Facts {
  /** Capabilities that nodes need; empty for what every node with rules understands. */
  readonly capabilities: readonly ExpressionCapability[];
  /** Names of the IP lists it refers to, sorted. */
  readonly lists: readonly string[];
  /** Fields it reads, as they are written, sorted. */
  readonly fields: readonly string[];
  /** Whether it reads the response, which only the last two phases have. */
  readonly response: boolean;
}

/** Facts of a tree. `value`: it is a value expression, which needs a capability whatever is in it. */
export function factsOf(tree: Tree, value: boolean): Facts {
  const needs = new Set<ExpressionCapability>(value ? ['rules-v2'] : []);
  const lists = new Set<string>();
  const fields = new Set<string>();
  let response = false;
  walk(tree, (node) => {
    for (const capability of needsOf(node)) needs.add(capability);
    if (node.op === 'in_list') lists.add(node.list);
    if (node.op !== 'field') return;
    fields.add(formatField(node));
    response ||= FIELDS.get(node.field)!.phases === 'response';
  });
  return {
    capabilities: EXPRESSION_CAPABILITIES.filter((capability) => needs.has(capability)),
    lists: [...lists].sort(),
    fields: [...fields].sort(),
    response,
  };
}

function needsOf(node: Tree | Argument): readonly ExpressionCapability[] {
  if (node.op === 'field') return FIELDS.get(node.field)!.needs;
  if (node.op === 'call') return FUNCTIONS.get(node.function)!.needs;
  return node.op in OPERATORS ? OPERATORS[node.op as keyof typeof OPERATORS].needs : [];
}
