import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { root } from '../../../../bin/lib/root.ts';
import { bytesOf } from '../../../../services/rules/evaluate/bytes.ts';
import { urlDecodePath } from '../../../../services/rules/evaluate/functions.ts';
import { isPlain, normalTarget } from '../../../../services/rules/evaluate/normal-path.ts';
import { canonicalPath } from '../../../../services/rules/evaluate/request-values.ts';

interface Vectors {
  normal: { raw: string; normal: string | null }[];
  plain: { raw: string; plain: boolean }[];
}
// The edge has the same: agents/caddy/exchange/normal_test.go.
const vectors = JSON.parse(readFileSync(join(root, 'test/vectors/normal-paths.json'), 'utf8')) as Vectors;

for (const { raw, normal } of vectors.normal) {
  test(`the normal path of ${raw}`, (t) => {
    t.is(normalTarget(bytesOf(raw)), normal === null ? null : bytesOf(normal));
    t.is(normalTarget(`${bytesOf(raw)}?a=/../%61`), normal === null ? null : `${bytesOf(normal)}?a=/../%61`);
  });
}

for (const { raw, plain } of vectors.plain) {
  test(`whether ${raw} is plain`, (t) => {
    const uri = bytesOf(raw);
    t.is(isPlain(uri, canonicalPath(urlDecodePath(uri.split('?', 1)[0]!))), plain);
  });
}
