import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fromBinary, toBinary } from '@bufbuild/protobuf';
import test from 'ava';
import { root } from '../../../../bin/lib/root.ts';
import { checkCacheCondition, checkCondition, checkValue } from '../../../../contract/expression/expression.ts';
import type { Phase } from '../../../../contract/expression/phases.ts';
import type { Tree } from '../../../../contract/expression/tree.ts';
import { expressionMessage } from '../../../../models/rules/expression-message.ts';
import {
  type ExpressionNode,
  ExpressionOp,
  ExpressionSchema,
} from '../../../../proto/gen/svc/config/v1/expression_pb.js';

interface Row {
  kind: 'condition' | 'value' | 'cacheRule';
  phase: Phase;
  source: string;
  expect: { ok?: object };
  tree: string;
}

const rowsOf = (file: string) =>
  (JSON.parse(readFileSync(join(root, 'test/vectors', file), 'utf8')) as { rows: Row[] }).rows;

function treeOf({ kind, phase, source }: Row): Tree {
  const result =
    kind === 'cacheRule'
      ? checkCacheCondition(source)
      : (kind === 'value' ? checkValue : checkCondition)(source, { phase });
  if (!result.valid) throw new Error(`${source}: ${result.error.code}`);
  return result.tree;
}

const encoded = (tree: Tree) =>
  toBinary(
    ExpressionSchema,
    expressionMessage(tree, (name) => `id-of-${name}`),
  );

test('every valid vector has the bytes that nodes are tested with', (t) => {
  const rows = rowsOf('expression-trees.json');
  t.true(rows.length > 400);
  const wrong = rows.filter((row) => Buffer.from(encoded(treeOf(row))).toString('base64') !== row.tree);
  t.deepEqual(
    wrong.map(({ source }) => source),
    [],
  );
  const named = new Set(rows.map(({ source }) => source));
  const missing = rowsOf('expressions.json').filter(
    ({ source, expect }) => expect.ok && source.length <= 1000 && !named.has(source),
  );
  t.deepEqual(
    missing.map(({ source }) => source),
    [],
  );
});

test('no valid vector is beyond what a node accepts: 256 nodes, 64 deep', (t) => {
  const size = (node: ExpressionNode): number => node.children.reduce((sum, child) => sum + size(child), 1);
  const depth = (node: ExpressionNode): number => 1 + Math.max(0, ...node.children.map(depth));
  const trees = rowsOf('expressions.json')
    .filter(({ expect }) => expect.ok)
    .map((row) => fromBinary(ExpressionSchema, encoded(treeOf(row))).root!);
  t.true(Math.max(...trees.map(size)) <= 256);
  t.true(Math.max(...trees.map(depth)) <= 64);
  t.true(Math.max(...trees.map(size)) > 250);
});

test('a comparison names its field, a function is below it, lists have their ids', (t) => {
  const source = 'http.request.headers["X-A"] eq "é" and len(http.host) gt -1 and not ip.src in $office';
  const { version, root: top } = expressionMessage(
    treeOf({ kind: 'condition', phase: 'cache', source } as Row),
    () => '7',
  );
  t.is(version, 1);
  const [equal, greater, not] = top!.children;
  t.is(top!.op, ExpressionOp.AND);
  t.like(equal, { op: ExpressionOp.EQ, field: 'http.request.headers', name: 'x-a', children: { length: 0 } });
  t.deepEqual(equal!.values[0]!.value, { case: 'text', value: new Uint8Array([0xc3, 0xa9]) });
  t.like(greater, { op: ExpressionOp.GT, field: '', children: [{ op: ExpressionOp.CALL, function: 'len' }] });
  t.deepEqual(greater!.values[0]!.value, { case: 'number', value: -1n });
  t.like(not!.children[0], { op: ExpressionOp.IN_LIST, field: 'ip.src', listId: '7' });
});
