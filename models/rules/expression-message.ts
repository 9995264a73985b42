// Trees of expressions as nodes get them: without places in the source, and with lists by their ids.
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { utf8 } from '../../contract/expression/bytes.ts';
import type { Argument, FieldNode, Literal, Tree, ValueType } from '../../contract/expression/tree.ts';
import { formatCidr, parseCidr } from '../../contract/scalars/cidr.ts';
import {
  type Expression,
  type ExpressionNode,
  ExpressionNodeSchema,
  ExpressionOp,
  ExpressionSchema,
  type ExpressionValue,
  ExpressionValueSchema,
} from '../../proto/gen/svc/config/v1/expression_pb.js';

/** Of the language; raised when an older node would take a tree for another one. */
const VERSION = 1;

const OPS: Readonly<Record<Exclude<(Tree | Argument)['op'], 'text' | 'integer'>, ExpressionOp>> = {
  and: ExpressionOp.AND,
  or: ExpressionOp.OR,
  not: ExpressionOp.NOT,
  literal: ExpressionOp.LITERAL,
  field: ExpressionOp.FIELD,
  call: ExpressionOp.CALL,
  eq: ExpressionOp.EQ,
  ne: ExpressionOp.NE,
  lt: ExpressionOp.LT,
  le: ExpressionOp.LE,
  gt: ExpressionOp.GT,
  ge: ExpressionOp.GE,
  contains: ExpressionOp.CONTAINS,
  matches: ExpressionOp.MATCHES,
  wildcard: ExpressionOp.WILDCARD,
  strict_wildcard: ExpressionOp.STRICT_WILDCARD,
  in: ExpressionOp.IN,
  in_list: ExpressionOp.IN_LIST,
};

/** The message of a tree; `listId` answers the id of an IP list by its name. */
export function expressionMessage(tree: Tree, listId: (name: string) => string): Expression {
  return create(ExpressionSchema, { version: VERSION, root: nodeOf(tree, listId) });
}

function nodeOf(node: Tree | Argument, listId: (name: string) => string): ExpressionNode {
  switch (node.op) {
    case 'text':
      return make({ op: OPS.literal, values: [literalOf(node.value, 'string')] });
    case 'integer':
      return make({ op: OPS.literal, values: [literalOf(node.value, 'number')] });
    case 'literal':
      return make({ op: OPS.literal, values: [literalOf(node.value, 'boolean')] });
    case 'field':
      return make({ op: OPS.field, ...namesOf(node) });
    case 'call':
      return make({ op: OPS.call, function: node.function, children: node.args.map((each) => nodeOf(each, listId)) });
    case 'and':
    case 'or':
      return make({ op: OPS[node.op], children: node.children.map((child) => nodeOf(child, listId)) });
    case 'not':
      return make({ op: OPS.not, children: [nodeOf(node.child, listId)] });
    case 'in_list':
      return make({ op: OPS.in_list, ...namesOf(node.operand), listId: listId(node.list) });
    default: {
      const { operand } = node;
      // A field is named by its comparison; a function is a node below it.
      const subject = operand.op === 'field' ? namesOf(operand) : { children: [nodeOf(operand, listId)] };
      const values = (node.op === 'in' ? node.values : [node.value]).map((each) => literalOf(each, operand.type));
      return make({ op: OPS[node.op], ...subject, values });
    }
  }
}

function make(fields: MessageInitShape<typeof ExpressionNodeSchema>): ExpressionNode {
  return create(ExpressionNodeSchema, fields);
}

function namesOf({ field, name }: FieldNode): { field: string; name: string } {
  return { field, name: name ?? '' };
}

function literalOf(literal: Literal, type: ValueType): ExpressionValue {
  const value = (): ExpressionValue['value'] => {
    switch (type) {
      case 'string':
        return { case: 'text', value: utf8(literal as string) };
      case 'number':
        return { case: 'number', value: BigInt(literal as number) };
      case 'boolean':
        return { case: 'truth', value: literal as boolean };
      case 'ip':
        return { case: 'cidr', value: formatCidr(parseCidr(literal as string)!) };
    }
  };
  return create(ExpressionValueSchema, { value: value() });
}
