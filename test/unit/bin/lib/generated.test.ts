// What is written for people and programs from the contract.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { apiDocument, endpoints } from '../../../../bin/lib/api-document.ts';
import { generateClient } from '../../../../bin/lib/generate-client.ts';
import { generateReference } from '../../../../bin/lib/generate-reference.ts';
import { limitsOf, typeOf } from '../../../../bin/lib/schema-types.ts';
import type { JsonSchema } from '../../../../contract/examples.ts';
import { PROCEDURES } from '../../../../contract/index.ts';
import { temporaryFolder } from '../../../helpers/temporary-folder.ts';

const TYPES: readonly (readonly [JsonSchema, string])[] = [
  [{ type: 'string', pattern: '^a$' }, 'string'],
  [{ type: 'integer', minimum: 1 }, 'number'],
  [{ const: 'on', type: 'string' }, "'on'"],
  [{ enum: ['a', 1] }, "'a' | 1"],
  [{ anyOf: [{ type: 'string' }, { type: 'null' }] }, 'string | null'],
  [{ anyOf: [{ type: 'string' }, { type: 'string', format: 'date-time' }] }, 'string'],
  [{ type: 'array', items: { type: 'string' } }, 'string[]'],
  [{ type: 'array', items: { enum: ['a', 'b'] } }, "Array<'a' | 'b'>"],
  [{ $ref: '#/components/schemas/Site' }, 'Site'],
  [{ type: 'object', properties: {} }, 'Record<string, never>'],
  [{ type: 'object', patternProperties: { '^.*$': {} } }, 'Record<string, unknown>'],
  [
    { type: 'object', properties: { a: { type: 'null' }, b: { type: 'boolean' } }, required: ['a'] },
    '{\n  a: null;\n  b?: boolean | undefined;\n}',
  ],
  [{}, 'unknown'],
];

test('schemas are types', (t) => {
  for (const [schema, type] of TYPES) t.is(typeOf(schema), type);
  // Better no client than one with a wrong type.
  t.throws(() => typeOf({ oneOf: [] }), { message: /oneOf/ });
});

test('bounds are words', (t) => {
  t.is(limitsOf({ type: 'integer', minimum: 1, maximum: 100, default: 50 }), '1 to 100; default 50.');
  t.is(limitsOf({ type: 'string', maxLength: 64 }), 'Up to 64 characters.');
  t.is(limitsOf({ type: 'array', minItems: 1 }), '1 entries or more.');
  t.is(limitsOf({ type: 'integer', minimum: 0 }), '');
});

test('the reference has every operation with its fields and codes, and its links lead to headings', async (t) => {
  const folder = temporaryFolder(t);
  const document = await apiDocument();
  generateReference(document, folder);
  const names = (readdirSync(folder, { recursive: true }) as string[]).filter((name) => name.endsWith('.md'));
  const pages = new Map(names.map((name) => [name, readFileSync(join(folder, name), 'utf8')]));
  const all = [...pages.values()].join('\n');
  for (const { method, path, parameters, body, errors, operation } of endpoints(document)) {
    const part = all.split(`\n## ${method} ${path}\n`)[1]?.split('\n## ')[0] ?? '';
    t.true(part.includes(operation.summary.replaceAll('<', '&lt;')), operation.operationId);
    const inputs = [...parameters.map(({ name }) => name), ...Object.keys(body?.schema.properties ?? {})];
    for (const name of inputs) t.true(part.includes(`| \`${name}\` |`), `${operation.operationId} ${name}`);
    for (const code of errors.flatMap(({ codes }) => codes)) {
      t.true(part.includes(`\`${code}\``) || pages.get('api/README.md')!.includes(`\`${code}\``), code);
      t.true(pages.get('errors.md')!.includes(`| \`${code}\` |`), code);
    }
  }
  const headings = (name: string) =>
    [...pages.get(name)!.matchAll(/^## (.+)$/gm)].map(([, text]) =>
      text!
        .toLowerCase()
        .replaceAll(/[^a-z0-9_ -]/g, '')
        .replaceAll(' ', '-'),
    );
  const links = [...all.matchAll(/\]\(([a-z-]+\.md)#([^)]+)\)/g)];
  t.true(links.length > PROCEDURES.size);
  for (const [, name, anchor] of links) t.true(headings(`api/${name}`).includes(anchor!), `${name}#${anchor}`);
});

test('the client has every operation', async (t) => {
  const folder = temporaryFolder(t);
  generateClient(await apiDocument(), folder);
  const text = readFileSync(join(folder, 'operations.ts'), 'utf8');
  for (const [name, { method, path }] of PROCEDURES) {
    t.true(text.includes(`  '${name}': { method: '${method}', path: '${path}'`), name);
    t.true(text.includes(`Call<'${name}'>;`), name);
  }
});
