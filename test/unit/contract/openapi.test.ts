import type { ErrorObject } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import * as formats from 'ajv-formats';
import test from 'ava';
import { ERRORS } from '../../../contract/errors.ts';
import { PROCEDURES } from '../../../contract/index.ts';
import { MODELS } from '../../../contract/models.ts';
import { openApi } from '../../../contract/openapi.ts';
import { pathInputs, SCOPES } from '../../../contract/procedure.ts';
import { validateInput } from '../../../runtime/validate.ts';

interface Media {
  schema: { properties: Record<string, object> };
  example: unknown;
}

interface Operation {
  operationId: string;
  summary: string;
  description: string;
  tags: string[];
  security: Record<string, string[]>[];
  parameters?: { name: string; in: string; required: boolean; schema: object; example?: unknown }[];
  requestBody?: { content: { 'application/json': Media } };
  responses: Record<string, { description: string; headers?: Record<string, object>; content: Record<string, Media> }>;
}

const document = openApi(PROCEDURES.values(), { server: 'https://console.example.com/api/v1', version: '1.2.3' }) as {
  openapi: string;
  servers: { url: string }[];
  info: { version: string };
  paths: Record<string, Record<string, Operation>>;
  tags: { name: string }[];
  components: Record<'securitySchemes' | 'schemas' | 'headers', Record<string, object>>;
};
/** The body of success: JSON, or what the procedure says. */
const successOf = (operation: Operation): Media => {
  const { status, media = 'application/json' } = PROCEDURES.get(operation.operationId)!;
  const { content } = operation.responses[String(status)]!;
  return content[media]!;
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
  t.deepEqual(operationOf('sites.list').security, [{ accessKey: [] }, { serviceAccountKey: ['sites:read'] }]);
  const takes = (name: string) =>
    (operationOf(name).parameters ?? []).some((parameter) => parameter.name === 'Idempotency-Key');
  t.true(takes('clusters.create'));
  t.false(takes('accessKeys.create'));
  t.false(takes('clusters.list'));
});

test('every reference leads somewhere', (t) => {
  const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/components\/([a-z]+)\/([^"]+)"/gi)];
  t.true(references.length > 0);
  for (const [, group, name] of references) {
    t.truthy(document.components[group as 'schemas']?.[name!], `${group} ${name}`);
  }
  t.is(references.length, JSON.stringify(document).split('"$ref"').length - 1);
});

const ajv = new Ajv2020({ allErrors: true, strict: false });
(formats.default as unknown as (ajv: Ajv2020) => void)(ajv);
// Keywords beside schemas that JSON Schema does not know of.
ajv.addSchema({ $id: 'svc:document', components: document.components });

/** What is wrong with a value, by a schema of the document. */
function faults(schema: object, value: unknown): ErrorObject[] {
  const text = JSON.stringify(schema).replaceAll('"#/components/', '"svc:document#/components/');
  const validate = ajv.compile(JSON.parse(text));
  validate(value);
  return validate.errors ?? [];
}

const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method, operation, name: operation.operationId })),
);

test('every schema is one of JSON Schema 2020-12, which OpenAPI 3.1 takes as it is', (t) => {
  const schemas = [
    ...Object.values(document.components.schemas),
    ...operations.flatMap(({ operation }) => [
      ...(operation.parameters ?? []).map(({ schema }) => schema),
      ...Object.values(operation.requestBody?.content ?? {}).map(({ schema }) => schema),
      ...Object.values(operation.responses).flatMap(({ content }) =>
        Object.values(content).map(({ schema }) => schema),
      ),
    ]),
  ];
  for (const schema of schemas) t.true(ajv.validateSchema(schema) as boolean, JSON.stringify(ajv.errors));
});

test('what OpenAPI 3.1 requires of operations', (t) => {
  const shapes = new Set<string>();
  for (const { path, method, operation, name } of operations) {
    t.regex(path, /^\//, name);
    t.true(['get', 'post', 'put', 'patch', 'delete'].includes(method), name);
    // Two templates that match the same paths are not allowed.
    shapes.add(`${method} ${path.replaceAll(/\{[^}]+\}/g, '{}')}`);
    const parameters = operation.parameters ?? [];
    t.is(new Set(parameters.map((each) => `${each.in} ${each.name}`)).size, parameters.length, name);
    t.deepEqual(
      parameters.filter((each) => each.in === 'path').map((each) => each.name),
      pathInputs(path),
      name,
    );
    t.true(
      Object.keys(operation.responses).every((status) => /^[1-5][0-9]{2}$/.test(status)),
      name,
    );
    for (const requirement of operation.security) {
      for (const scheme of Object.keys(requirement)) t.true(scheme in document.components.securitySchemes, name);
    }
    t.deepEqual(operation.tags, [name.split('.')[0]!], name);
    t.true(
      document.tags.some((tag) => tag.name === operation.tags[0]),
      name,
    );
  }
  t.is(shapes.size, operations.length);
});

test('the schemes of security are the two keys, and scopes are those that there are', (t) => {
  for (const scheme of Object.values(document.components.securitySchemes)) {
    t.like(scheme, { type: 'apiKey', in: 'header', name: 'x-api-key' });
  }
  t.deepEqual(Object.keys(document.components.securitySchemes).sort(), ['accessKey', 'serviceAccountKey']);
  const scopes = operations.flatMap(({ operation }) =>
    operation.security.flatMap((each) => each.serviceAccountKey ?? []),
  );
  t.true(scopes.every((scope) => (SCOPES as readonly string[]).includes(scope)));
});

test('every operation has a summary of one sentence, and says who may call it', (t) => {
  const summaries = operations.map(({ operation }) => operation.summary);
  t.is(new Set(summaries).size, summaries.length);
  for (const { operation, name } of operations) {
    t.regex(operation.summary, /^[A-Z][^\n]*\.$/, name);
    t.regex(operation.description, /^(For operators|Needs no|Needs a signed-in)/, name);
  }
});

test('every example is accepted by its schema, and every request by the console', (t) => {
  for (const { operation, name } of operations) {
    const procedure = PROCEDURES.get(name)!;
    const given: Record<string, unknown> = {};
    for (const parameter of operation.parameters ?? []) {
      if (parameter.in === 'header') continue;
      t.deepEqual(faults(parameter.schema, parameter.example), [], `${name} ${parameter.name}`);
      given[parameter.name] = parameter.example;
    }
    if (operation.requestBody) {
      const { schema, example } = operation.requestBody.content['application/json'];
      t.deepEqual(faults(schema, example), [], name);
      Object.assign(given, example);
    }
    t.notThrows(() => validateInput(procedure, given), `${name} ${JSON.stringify(given)}`);
    const { schema, example } = successOf(operation);
    t.deepEqual(faults(schema, example), [], name);
    t.deepEqual(faults(procedure.output, example), [], name);
  }
});

test('an answer that is no JSON has the type that its procedure says, and errors are JSON', (t) => {
  const others = operations.filter(({ name }) => PROCEDURES.get(name)!.media !== undefined);
  t.deepEqual(
    others.map(({ name }) => name),
    ['jobs.file', 'usage.export'],
  );
  for (const { operation } of others) {
    for (const [status, { content }] of Object.entries(operation.responses)) {
      t.deepEqual(Object.keys(content), [status === '200' ? 'text/csv' : 'application/json']);
    }
    t.true(JSON.stringify(operation.responses['429']).includes('EXPORT_LIMIT'));
  }
});

test('every text of an example says something', (t) => {
  for (const { operation, name } of operations) {
    const { example } = operation.requestBody?.content['application/json'] ?? { example: {} };
    t.notRegex(JSON.stringify(example), /null|"(text|string)"/, name);
  }
});

test('items of lists are objects with a name, and every name is used', (t) => {
  const lists = operations.filter(({ name }) => 'items' in (PROCEDURES.get(name)!.output.properties ?? {}));
  t.true(lists.length >= 10);
  for (const { operation, name } of lists) {
    const { items } = successOf(operation).schema.properties;
    t.true(
      '$ref' in (items as { items: object }).items,
      `${name}: its object is not exported by its file of contract/resources`,
    );
  }
  const text = JSON.stringify(document);
  for (const name of Object.keys(MODELS)) t.true(text.includes(`"#/components/schemas/${name}"`), name);
});

test('what a refused call is told to wait is told in a header too', (t) => {
  for (const { operation, name } of operations) {
    for (const status of ['429', '503']) {
      const response = operation.responses[status];
      if (response) t.deepEqual(Object.keys(response.headers ?? {}), ['Retry-After'], `${name} ${status}`);
    }
  }
});
