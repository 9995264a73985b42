// Conventions of /api/v1 that every declared procedure keeps, whoever declares it.
import test from 'ava';
import { PROCEDURES } from '../../../contract/index.ts';
import type { AnyProcedure } from '../../../contract/procedure.ts';

interface Schema {
  properties?: Record<string, Schema>;
  anyOf?: Schema[];
  [keyword: string]: unknown;
}

const procedures = [...PROCEDURES.values()];
const endpointOf = ({ method, path }: AnyProcedure) => `${method} ${path}`;
const inputs = ({ input }: AnyProcedure) => (input as unknown as Schema).properties ?? {};
const outputs = ({ output }: AnyProcedure) => (output as unknown as Schema).properties ?? {};

/** Whether an answer tells when its resource was changed: itself, or in an object directly in it. */
function tellsUpdatedAt(procedure: AnyProcedure): boolean {
  const own = outputs(procedure);
  return 'updatedAt' in own || Object.values(own).some(({ properties }) => properties && 'updatedAt' in properties);
}

test('every PUT and PATCH of a resource with updatedAt takes expectedUpdatedAt, and can answer UPDATED_AT_MISMATCH', (t) => {
  const changes = procedures.filter(({ method }) => method === 'PUT' || method === 'PATCH');
  t.true(changes.filter(tellsUpdatedAt).length >= 8);
  for (const procedure of changes) {
    t.is('expectedUpdatedAt' in inputs(procedure), tellsUpdatedAt(procedure), endpointOf(procedure));
  }
  for (const procedure of procedures.filter((each) => 'expectedUpdatedAt' in inputs(each))) {
    t.true(procedure.errors.includes('UPDATED_AT_MISMATCH'), endpointOf(procedure));
  }
});

// Lists with a bound of their own instead of pages.
const UNPAGED: Readonly<Record<string, string>> = {
  'GET /analytics/breakdown': 'the largest 20, with a series each',
  'GET /analytics/top-nodes': 'the largest 50',
  'GET /analytics/top-requests': 'the largest 50',
  'GET /analytics/top-sites': 'the largest 50',
  'GET /analytics/top-rules': 'the most frequent 50',
  'GET /changes': 'the newest 20',
  'GET /platform-rules/hits': 'the most frequent 500',
  'GET /sites/{id}/origin-health': 'the origins of the site, at most 32',
  'GET /sites/{id}/rules/hits': 'the most frequent 500',
  'GET /sites/{id}/rules/logged': 'the most frequent 50',
  'GET /sites/{id}/waf/exclusions/hits': 'those of the settings, at most 200',
  'GET /sites/{id}/logs/top': 'the most frequent 50',
  'GET /sites/{id}/waf/packs': 'all, less than ten',
  'GET /sites/{id}/waf/rules': 'the most frequent 50',
  'GET /usage': 'at most 5000, and a cursor',
  'GET /usage/changes': 'at most 5000, and a sequence number',
};

/** Lists whose pages have 20 items by default. */
const BY_20 = ['GET /sites', 'GET /cache-tasks'];

test('every list has items, total, page from 1 and pageSize from 1 to 100: 20 by default for sites and cache tasks, else 50', (t) => {
  const lists = procedures.filter((procedure) => 'items' in outputs(procedure));
  t.true(lists.length >= 10);
  for (const procedure of lists) {
    const endpoint = endpointOf(procedure);
    if (endpoint in UNPAGED) continue;
    t.deepEqual(Object.keys(outputs(procedure)), ['items', 'total'], endpoint);
    const { page, pageSize } = inputs(procedure);
    t.like(page, { type: 'integer', minimum: 1, default: 1 }, endpoint);
    t.like(pageSize, { type: 'integer', minimum: 1, maximum: 100 }, endpoint);
    t.is(pageSize!.default, BY_20.includes(endpoint) ? 20 : 50, endpoint);
  }
});

test('every procedure that changes something is audited or says why not, and every GET changes nothing', (t) => {
  const unaudited = procedures.filter(({ method, audit }) => method !== 'GET' && audit === null).map(endpointOf);
  // They only look; an export in the background reads what other calls return.
  t.deepEqual(
    unaudited.filter(
      (endpoint) =>
        !/\/(preview|rehearse|try|explain|validate|(usage|logs)\/exports|dns\/(zones|test)|jobs\/\{id\}\/cancel)$/.test(
          endpoint,
        ),
    ),
    [],
  );
  for (const procedure of procedures.filter(({ method }) => method === 'GET')) {
    t.is(procedure.audit, null, endpointOf(procedure));
    t.true(procedure.readOnly, endpointOf(procedure));
  }
});
