// The OpenAPI 3.1 document of the contract: one operation a procedure, with its errors.
import { ERRORS, type ErrorCode, GENERAL_CODES } from './errors.ts';
import { exampleOf, type JsonSchema } from './examples.ts';
import { MODELS } from './models.ts';
import { type AnyProcedure, pathInputs, SCOPES } from './procedure.ts';

export interface OpenApiOptions {
  /** Address of the API, for the servers entry. */
  server: string;
  version: string;
}

const ERROR_SCHEMA = { $ref: '#/components/schemas/Error' };
const RETRY_AFTER = { $ref: '#/components/headers/RetryAfter' };

/** Builds the document; schemas are JSON Schema 2020-12 as they are. */
export function openApi(procedures: Iterable<AnyProcedure>, { server, version }: OpenApiOptions): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const procedure of procedures) {
    paths[procedure.path] ??= {};
    paths[procedure.path]![procedure.method.toLowerCase()] = operation(procedure);
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Edge Delivery Console',
      version,
      description:
        'Errors have the body { defined, code, status, message, data }. Decide by `code` and `data`, never ' +
        'by `message`.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    tags: tags(Object.values(paths).flatMap((path) => Object.values(path) as { tags: string[] }[])),
    servers: [{ url: server }],
    security: [{ accessKey: [] }],
    paths: Object.fromEntries(Object.entries(paths).sort(([a], [b]) => (a < b ? -1 : 1))),
    components: {
      securitySchemes: {
        accessKey: { type: 'apiKey', in: 'header', name: 'x-api-key', description: 'Access key, prefix ewk_.' },
        serviceAccountKey: {
          type: 'apiKey',
          in: 'header',
          name: 'x-api-key',
          description: `Key of a service account, prefix ews_. Scopes: ${SCOPES.join(', ')}.`,
        },
      },
      headers: {
        Change: {
          description:
            'Changes that the call published: <cluster>=<revision>, comma-separated, or ban=<epoch>:<number>.',
          schema: { type: 'string' },
        },
        Replayed: {
          description: 'true: this is the stored response of the first request with this Idempotency-Key.',
          schema: { const: 'true' },
        },
        RetryAfter: {
          description: 'Seconds to wait before the next request.',
          schema: { type: 'integer', minimum: 0 },
        },
      },
      schemas: {
        ...models(),
        Error: {
          type: 'object',
          examples: [
            {
              defined: false,
              code: 'SITE_NOT_FOUND',
              status: 404,
              message: ERRORS.SITE_NOT_FOUND.message,
              data: {},
            },
          ],
          properties: {
            defined: { type: 'boolean' },
            code: { type: 'string', enum: Object.keys(ERRORS) },
            status: { type: 'integer' },
            message: { type: 'string' },
            data: { type: 'object' },
          },
          required: ['defined', 'code', 'status', 'message', 'data'],
        },
        Unmatched: {
          description: 'No API path matches. A path parameter with characters that no ID has is a cause, too.',
          type: 'object',
          properties: { error: { const: 'not_found' } },
          required: ['error'],
        },
      },
    },
  };
}

function tags(operations: readonly { tags: string[] }[]): object[] {
  const names = new Set(operations.flatMap((each) => each.tags));
  return [...names].sort().map((name) => ({ name }));
}

/** Whole objects by their JSON, so that the same object is named wherever it stands. */
const MODEL_BY_JSON = new Map(Object.entries(MODELS).map(([name, schema]) => [JSON.stringify(schema), name]));

/** The named objects, which refer to each other. */
function models(): Record<string, JsonSchema> {
  return Object.fromEntries(Object.entries(MODELS).map(([name, schema]) => [name, referring(plain(schema), name)]));
}

/** The schema with references in place of the named objects inside it; `within` is the one that it is itself. */
function referring(schema: JsonSchema, within = ''): JsonSchema {
  const name = MODEL_BY_JSON.get(JSON.stringify(schema));
  if (name !== undefined && name !== within) return { $ref: `#/components/schemas/${name}` };
  const { properties, items, anyOf } = schema;
  return {
    ...schema,
    ...(properties && {
      properties: Object.fromEntries(Object.entries(properties).map(([key, value]) => [key, referring(value)])),
    }),
    ...(items && { items: referring(items) }),
    ...(anyOf && { anyOf: anyOf.map((member) => referring(member)) }),
  };
}

/** The schema as plain JSON: its hidden marks would end up in copies of it. */
function plain(schema: unknown): JsonSchema {
  return JSON.parse(JSON.stringify(schema)) as JsonSchema;
}

function operation(procedure: AnyProcedure): object {
  const inPath = pathInputs(procedure.path);
  const schema = plain(procedure.input);
  const fromQuery = procedure.method === 'GET' || procedure.method === 'DELETE';
  const rest = Object.keys(schema.properties ?? {}).filter((name) => !inPath.includes(name));
  const parameters = [
    ...inPath.map((name) => parameter(name, 'path', schema)),
    ...(fromQuery ? rest.map((name) => parameter(name, 'query', schema)) : []),
    ...(takesIdempotencyKey(procedure) ? [IDEMPOTENCY_PARAMETER] : []),
  ];
  return {
    operationId: procedure.name,
    tags: [procedure.name.split('.')[0]],
    summary: procedure.summary,
    description: description(procedure),
    security: security(procedure),
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(fromQuery ? {} : { requestBody: requestBody(schema, inPath) }),
    responses: responses(procedure),
  };
}

/** Who may call it, and what is particular to it. */
function description(procedure: AnyProcedure): string {
  const { access, readOnly, method, idempotency, bodyLimit } = procedure;
  const sentences: string[] = [];
  if (access === 'public') sentences.push('Needs no credentials.');
  else if (access === 'session') sentences.push('Needs a signed-in console session; access keys are rejected.');
  else {
    sentences.push(
      readOnly
        ? 'For operators; a read-only access key suffices.'
        : 'For operators; a read-only access key is rejected.',
    );
    if (typeof access === 'object') {
      sentences.push(
        access.scope === null
          ? 'For service accounts of any scope.'
          : `For service accounts with the scope ${access.scope}.`,
      );
    }
  }
  if (method !== 'GET' && method !== 'DELETE') {
    if (idempotency === 'refused')
      sentences.push('Takes no Idempotency-Key, because the response contains a one-time secret.');
    if (bodyLimit !== undefined) sentences.push(`The body has at most ${bodyLimit} bytes.`);
  }
  return sentences.join(' ');
}

const IDEMPOTENCY_PARAMETER = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description:
    'Makes a retry safe: the same request with the same key takes effect once. 1 to 255 printable ASCII ' +
    'characters, kept for 24 hours.',
  schema: { type: 'string', minLength: 1, maxLength: 255 },
};

function takesIdempotencyKey({ method, idempotency }: AnyProcedure): boolean {
  return method !== 'GET' && method !== 'DELETE' && idempotency === 'accepted';
}

function parameter(name: string, place: 'path' | 'query', input: JsonSchema): object {
  const schema = input.properties?.[name] ?? {};
  const required = place === 'path' || (input.required?.includes(name) ?? false);
  return {
    name,
    in: place,
    required,
    ...(schema.description === undefined ? {} : { description: schema.description }),
    schema,
    example: exampleOf(schema, name),
  };
}

function requestBody(input: JsonSchema, inPath: readonly string[]): object {
  const properties = Object.fromEntries(
    Object.entries(input.properties ?? {}).filter(([name]) => !inPath.includes(name)),
  );
  const required = (input.required ?? []).filter((name) => !inPath.includes(name));
  const { examples, ...rest } = input;
  const { expectedUpdatedAt: _, ...shown } = properties;
  const example = examples?.[0] ?? exampleOf({ type: 'object', properties: shown, required });
  const schema = { ...referring({ ...rest, properties }), required };
  return { required: required.length > 0, content: { 'application/json': { schema, example } } };
}

/** For keys of service accounts the scope is the role that the key needs. */
function security({ access }: AnyProcedure): object[] {
  if (access === 'public') return [];
  if (typeof access !== 'object') return [{ accessKey: [] }];
  return [{ accessKey: [] }, { serviceAccountKey: access.scope === null ? [] : [access.scope] }];
}

function responses(procedure: AnyProcedure): object {
  const byStatus = new Map<number, ErrorCode[]>();
  for (const code of [...GENERAL_CODES, ...guardCodes(procedure), ...procedure.errors]) {
    const { status } = ERRORS[code];
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  const errors = [...byStatus]
    .sort(([a], [b]) => a - b)
    .map(([status, codes]) => [String(status), errorResponse(status, codes)]);
  const output = plain(procedure.output);
  const headers = {
    ...(procedure.readOnly ? {} : { 'X-Svc-Change': { $ref: '#/components/headers/Change' } }),
    ...(takesIdempotencyKey(procedure) ? { 'Idempotent-Replayed': { $ref: '#/components/headers/Replayed' } } : {}),
  };
  const success = {
    description: 'Success.',
    ...(Object.keys(headers).length > 0 ? { headers } : {}),
    content: {
      [procedure.media ?? 'application/json']: { schema: referring(output), example: exampleOf(output, '', true) },
    },
  };
  return { [String(procedure.status)]: success, ...Object.fromEntries(errors) };
}

/** What the gateway answers before the procedure itself is asked, as the declaration implies it. */
function guardCodes(procedure: AnyProcedure): ErrorCode[] {
  const { access, idempotency, method } = procedure;
  // Also for a target that is too long, or a parameter that no id looks like.
  const codes: ErrorCode[] = ['NOT_FOUND'];
  if (access !== 'public') {
    codes.push('API_KEY_RATE_LIMITED', typeof access === 'object' ? 'SCOPE_REQUIRED' : 'SERVICE_ACCOUNT_FORBIDDEN');
    if (!procedure.readOnly) codes.push('ACCESS_KEY_READ_ONLY');
    if (access === 'session') codes.push('ACCESS_KEY_SESSION_REQUIRED');
  }
  if (procedure.media !== undefined) codes.push('EXPORT_LIMIT');
  if (method === 'GET' || method === 'DELETE') return codes;
  codes.push('UNSUPPORTED_MEDIA_TYPE');
  if (idempotency === 'refused') return [...codes, 'IDEMPOTENCY_KEY_UNSUPPORTED'];
  return [...codes, 'IDEMPOTENCY_KEY_INVALID', 'IDEMPOTENCY_KEY_MISMATCH', 'IDEMPOTENCY_IN_PROGRESS'];
}

function errorResponse(status: number, codes: readonly ErrorCode[]): object {
  const unique = [...new Set(codes)];
  const error = { allOf: [ERROR_SCHEMA, { properties: { code: { enum: unique } } }] };
  const schema = status === 404 ? { anyOf: [error, { $ref: '#/components/schemas/Unmatched' }] } : error;
  return {
    description: unique.map((code) => `${code}: ${ERRORS[code].message}`).join(' '),
    ...(status === 429 || status === 503 ? { headers: { 'Retry-After': RETRY_AFTER } } : {}),
    content: { 'application/json': { schema } },
  };
}
