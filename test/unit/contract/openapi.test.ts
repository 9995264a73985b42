import test from 'ava';
import { ERRORS } from '../../../contract/errors.ts';
import { PROCEDURES } from '../../../contract/index.ts';
import { openApi } from '../../../contract/openapi.ts';

interface Operation {
  operationId: string;
  security: object[];
  parameters?: { name: string; in: string; required: boolean; schema: object }[];
  requestBody?: { content: { 'application/json': { schema: { properties: Record<string, object> } } } };
  responses: Record<string, { content: { 'application/json': { schema: object } } }>;
}

const document = openApi(PROCEDURES.values(), { server: 'https://console.example.com/api/v1', version: '1.2.3' }) as {
  openapi: string;
  servers: { url: string }[];
  info: { version: string };
  paths: Record<string, Record<string, Operation>>;
  components: { securitySchemes: Record<string, object>; schemas: Record<string, object> };
};
const operationOf = (name: string) => {
  const procedure = PROCEDURES.get(name)!;
  return document.paths[procedure.path]![procedure.method.toLowerCase()]!;
};

test('it is plain JSON', (t) => {
  t.deepEqual(JSON.parse(JSON.stringify(document)), document as never);
  t.is(document.openapi, '3.1.0');
  t.deepEqual(document.servers, [{ url: 'https://console.example.com/api/v1' }]);
  t.is(document.info.version, '1.2.3');
});

test('every procedure is one operation, named after it', (t) => {
  const ids = Object.values(document.paths).flatMap((path) =>
    Object.values(path).map(({ operationId }) => operationId),
  );
  t.deepEqual(ids.sort(), [...PROCEDURES.keys()].sort());
});

test('every input is a parameter or a field of the body, each once', (t) => {
  for (const procedure of PROCEDURES.values()) {
    const { parameters = [], requestBody } = operationOf(procedure.name);
    const named = parameters.filter((parameter) => parameter.in !== 'header').map(({ name }) => name);
    const inBody = Object.keys(requestBody?.content['application/json'].schema.properties ?? {});
    t.deepEqual([...named, ...inBody].sort(), Object.keys(procedure.input.properties).sort(), procedure.name);
    for (const match of procedure.path.matchAll(/\{([^}]+)\}/g)) {
      t.like(
        parameters.find(({ name }) => name === match[1]),
        { in: 'path', required: true },
        procedure.name,
      );
    }
  }
});

test('every error of a procedure is told under its status', (t) => {
  for (const procedure of PROCEDURES.values()) {
    const { responses } = operationOf(procedure.name);
    t.truthy(responses[procedure.status], procedure.name);
    for (const code of procedure.errors) {
      t.true(JSON.stringify(responses[ERRORS[code].status]).includes(code), `${procedure.name} ${code}`);
    }
  }
});

test('public operations ask for no key, others do; keys for idempotency stand where they are taken', (t) => {
  t.deepEqual(operationOf('system.status').security, []);
  t.deepEqual(operationOf('accessKeys.list').security, [{ accessKey: [] }]);
  t.deepEqual(operationOf('account.me').security, [{ accessKey: [] }, { serviceAccountKey: [] }]);
  const takes = (name: string) =>
    (operationOf(name).parameters ?? []).some((parameter) => parameter.name === 'Idempotency-Key');
  t.true(takes('clusters.create'));
  t.false(takes('accessKeys.create'));
  t.false(takes('clusters.list'));
});

test('every reference leads somewhere', (t) => {
  const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g)];
  t.true(references.length > 0);
  for (const [, name] of references) t.truthy(document.components.schemas[name!], name);
});
