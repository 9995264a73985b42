import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { newResource } from '../../../../bin/lib/new-resource.ts';

function folder(t: { teardown(work: () => void): void }): string {
  const tree = mkdtempSync(join(tmpdir(), 'new-resource-'));
  t.teardown(() => rmSync(tree, { recursive: true }));
  return tree;
}

test('a resource of two words has its name in the form that each place wants', (t) => {
  const tree = folder(t);
  mkdirSync(join(tree, 'migrations'));
  writeFileSync(join(tree, 'migrations', '0064-before.ts'), '');
  const files = newResource(tree, 'alert-rules');
  t.true(files.includes('migrations/0065-alert-rules.ts'));
  t.true(files.includes('console/src/features/alert-rules/AlertRulesPage.vue'));
  const read = (file: string) => readFileSync(join(tree, file), 'utf8');
  const all = files.map((file) => `${file}\n${read(file)}`).join('\n');
  t.notRegex(all, /greeting/i);
  const contract = read('contract/resources/alert-rules.ts');
  for (const line of [
    "export const alertRules = resource('alertRules', {",
    "path: '/alert-rules/{id}',",
    "audit: 'alert_rule.create',",
    "errors: ['ALERT_RULE_NOT_FOUND'],",
  ])
    t.true(contract.includes(line), line);
  t.true(read('migrations/0065-alert-rules.ts').includes('create table alert_rule ('));
  t.true(read('models/alert-rules/alert-rule.ts').includes("sql('alert_rule').insert("));
  t.true(read('models/alert-rules/alert-rule.entry.ts').includes('export const alertRuleKind: EntryKind'));
  t.true(read('services/alert-rules/alert-rules.service.ts').includes("from './alert-rules.ts'"));
  t.true(read('services/alert-rules/alert-rules.service.ts').includes("name: 'alert-rules',"));
  t.true(read('services/alert-rules/alert-rules.ts').includes("entries: [{ kind: 'alert-rule', id }]"));
  t.true(read('services/alert-rules/alert-rules.ts').includes("reason: 'alert_rule_created'"));
});

test('a name that is no plural in kebab-case is refused, and so is one that is taken', (t) => {
  const tree = folder(t);
  for (const name of ['Rules', 'rule', 'a b', '../rules', 'alert_rules', '', `${'a'.repeat(40)}s`])
    t.throws(() => newResource(tree, name), { message: /plural in kebab-case/ }, name);
  t.deepEqual(readdirSync(tree), []);
  newResource(tree, 'notes');
  t.throws(() => newResource(tree, 'notes'), { message: /is there already: nothing was written/ });
});
