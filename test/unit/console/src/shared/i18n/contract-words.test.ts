// Whatever the console can answer has words in both languages.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { root } from '../../../../../../bin/lib/root.ts';
import { AUTH_ENDPOINTS } from '../../../../../../contract/auth-endpoints.ts';
import { CERTIFICATE_FAILURES } from '../../../../../../contract/certificate-failures.ts';
import { ERRORS } from '../../../../../../contract/errors.ts';
import { EXPRESSION_ERRORS } from '../../../../../../contract/expression/errors.ts';
import { FIELDS } from '../../../../../../contract/expression/fields.ts';
import { FUNCTIONS } from '../../../../../../contract/expression/functions.ts';
import { PHASES } from '../../../../../../contract/expression/phases.ts';
import { PROCEDURES } from '../../../../../../contract/index.ts';
import { DIRECTORY_FAULTS } from '../../../../../../contract/resources/acme-directory.ts';
import { AUTHORITY_FAULTS, CERTIFICATE_FAULTS } from '../../../../../../contract/resources/certificates.ts';
import { WaitingNode } from '../../../../../../contract/resources/changes.ts';
import { FINDING_REASONS } from '../../../../../../contract/resources/rollout.ts';
import { RULE_WARNINGS } from '../../../../../../contract/rule-warnings.ts';
import { ACTION_KINDS, RULE_ACTIONS } from '../../../../../../contract/scalars/rule-action.ts';
import { LANGUAGES, messages } from '../../../../../helpers/console-sources.ts';

/** Everything the services and their parts write. */
const written = sourcesOf(['services', 'models', 'mixins', 'pipeline', 'runtime']);
const all = (pattern: RegExp, text = written) => [...new Set([...text.matchAll(pattern)].map((match) => match[1]!))];

function sourcesOf(folders: readonly string[]): string {
  const texts = folders.flatMap((folder) => {
    const names = readdirSync(join(root, folder), { recursive: true }) as string[];
    return names.filter((name) => name.endsWith('.ts')).map((name) => readFileSync(join(root, folder, name), 'utf8'));
  });
  return texts.join('\n');
}

const KEYWORDS_OF_SCHEMAS = [
  'required',
  'type',
  'minimum',
  'maximum',
  'minLength',
  'maxLength',
  'minItems',
  'maxItems',
  'uniqueItems',
  'pattern',
  'format',
  'enum',
  'const',
  'anyOf',
  'additionalProperties',
  'discriminator',
];

const auditActions = [
  ...[...PROCEDURES.values()].flatMap(({ audit }) => audit as string | readonly string[] | null),
  ...Object.values(AUTH_ENDPOINTS).flatMap(({ audit }) => audit as string | readonly string[] | null),
  ...all(/\baction: '([a-z_]+\.[a-z_]+)'/g),
].filter((action) => action !== null);
/** Reasons of something else than revisions. */
const OTHER_REASONS: readonly string[] = ['newer_compiler', ...FINDING_REASONS, ...CERTIFICATE_FAULTS];
const reasons = all(/\breason: '([a-z]+_[a-z_]+)'/g).filter((reason) => !OTHER_REASONS.includes(reason));
const literalsOf = (schema: unknown) =>
  ((schema as { anyOf?: { const: string }[]; enum?: string[] }).anyOf?.map((part) => part.const) ??
    (schema as { enum?: string[] }).enum ??
    []) as string[];

/** Names of all fields that a change may name: those of inputs that set something. */
function fieldNames(): string[] {
  const found = new Set<string>();
  const collect = (schema: unknown): void => {
    if (typeof schema !== 'object' || schema === null) return;
    const {
      properties = {},
      items,
      anyOf = [],
    } = schema as {
      properties?: Record<string, unknown>;
      items?: unknown;
      anyOf?: unknown[];
    };
    for (const [name, part] of Object.entries(properties)) {
      found.add(name);
      collect(part);
    }
    for (const part of [items, ...anyOf]) collect(part);
  };
  for (const { method, input } of PROCEDURES.values()) if (method === 'PUT' || method === 'PATCH') collect(input);
  found.delete('expectedUpdatedAt');
  return [...found];
}

const needed: Record<string, readonly string[]> = {
  'shared.errors': Object.keys(ERRORS),
  'shared.faults': [...CERTIFICATE_FAULTS, ...AUTHORITY_FAULTS, ...DIRECTORY_FAULTS],
  'shared.keywords': [...KEYWORDS_OF_SCHEMAS, ...all(/\bbadField\(\s*[^,]+,\s*'([a-zA-Z]+)'/g), 'text'],
  'certificates.failure': CERTIFICATE_FAILURES,
  'contract.audit': auditActions,
  'contract.reason': [...reasons, 'ban_created', 'ban_lifted'],
  'contract.field': fieldNames(),
  'app.changes.waiting': literalsOf(WaitingNode.properties.reason),
  'rules.error': Object.keys(EXPRESSION_ERRORS),
  'rules.field': [...FIELDS.keys()].map((field) => field.replaceAll('.', '_')),
  'rules.function': [...FUNCTIONS.keys()],
  'rules.warning': Object.keys(RULE_WARNINGS),
  'rules.phase': PHASES,
  'rules.phaseHelp': PHASES,
  'rules.actionName': ACTION_KINDS,
  'rules.config': Object.keys(RULE_ACTIONS.config.properties).filter((name) => name !== 'kind'),
};

for (const language of LANGUAGES) {
  for (const [prefix, names] of Object.entries(needed)) {
    test(`${language} has words for all of ${prefix}`, (t) => {
      const known = messages(language);
      t.true(names.length > 5, 'the contract was read');
      t.deepEqual(
        [...new Set(names)].filter((name) => !known.has(`${prefix}.${name}`)),
        [],
      );
    });
  }
}

test('the list of what orders fail with is what they do fail with', (t) => {
  const others = [
    'acme_directory',
    'certificate_binding',
    'certificate_expiring',
    'certificate_failed',
    'dns_credential',
    'dns_credential_failed',
    'dns_credential_missing',
    'dns_not_pointing',
  ];
  const codes = all(
    /'((?:acme|certificate|dns|http01|issued|node)_[a-z0-9_]+)'/g,
    sourcesOf(['services/certificates']),
  );
  t.deepEqual(codes.filter((code) => !others.includes(code)).sort(), [...CERTIFICATE_FAILURES].sort());
});

test('there are no words for errors that do not exist', (t) => {
  const own = ['NETWORK', 'TIMEOUT', 'ABORTED', 'UNEXPECTED_ANSWER', 'PASSKEY_CANCELLED', 'PASSKEY_FAILED', 'unknown'];
  const codes = [...messages('en').keys()]
    .filter((key) => key.startsWith('shared.errors.'))
    .map((key) => key.split('.')[2]!);
  t.deepEqual(
    codes.filter((code) => !Object.hasOwn(ERRORS, code) && !own.includes(code)),
    [],
  );
});
