// The OpenAPI 3.1 document of the contract: one operation a procedure, with its errors.
import { ERRORS, type ErrorCode, GENERAL_CODES } from './errors.ts';
import { type AnyProcedure, pathInputs, SCOPES } from './procedure.ts';

export interface OpenApiOptions {
  /** Address of the API, for the servers entry. */
  server: string;
  version: string;
}

interface SchemaObject {
  properties?: Record<string, object>;
  required?: string[];
  [keyword: string]: unknown;
}

const ERROR_SCHEMA = { $ref: '#/components/schemas/Error' };

/** Builds the document; schemas are JSON Schema 2020-12 as they are. */
export function openApi(procedures: Iterable<AnyProcedure>, { server, version }: OpenApiOptions): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const procedure of procedures) {
    paths[procedure.path] ??= {};
    paths[procedure.path]![procedure.method.toLowerCase()] = operation(procedure);
  }
  return {
    openapi: '3.1.0',
    info: { title: 'Edge Delivery Console', version },
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
      schemas: {
        Error: {
          type: 'object',
          properties: {
            defined: { type: 'boolean' },
            code: { type: 'string', enum: Object.keys(ERRORS) },
            status: { type: 'integer' },
            message: { type: 'string' },
            data: { type: 'object' },
          },
          required: ['defined', 'code', 'status', 'message', 'data'],
        },
      },
    },
  };
}

function operation(procedure: AnyProcedure): object {
  const inPath = pathInputs(procedure.path);
  const schema = procedure.input as unknown as SchemaObject;
  const fromQuery = procedure.method === 'GET' || procedure.method === 'DELETE';
  const rest = Object.keys(schema.properties ?? {}).filter((name) => !inPath.includes(name));
  const parameters = [
    ...inPath.map((name) => ({ name, in: 'path', required: true, schema: schema.properties?.[name] ?? {} })),
    ...(fromQuery ? rest.map((name) => queryParameter(name, schema)) : []),
    ...(takesIdempotencyKey(procedure) ? [IDEMPOTENCY_PARAMETER] : []),
  ];
  return {
    operationId: procedure.name,
    tags: [procedure.name.split('.')[0]],
    summary: procedure.summary,
    security: security(procedure),
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(fromQuery ? {} : { requestBody: requestBody(schema, inPath) }),
    responses: responses(procedure),
  };
}

const IDEMPOTENCY_PARAMETER = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  schema: { type: 'string', minLength: 1, maxLength: 255 },
};

function takesIdempotencyKey({ method, idempotency }: AnyProcedure): boolean {
  return method !== 'GET' && method !== 'DELETE' && idempotency === 'accepted';
}

function queryParameter(name: string, schema: SchemaObject): object {
  return {
    name,
    in: 'query',
    required: schema.required?.includes(name) ?? false,
    schema: schema.properties?.[name] ?? {},
  };
}

function requestBody(schema: SchemaObject, inPath: readonly string[]): object {
  const properties = Object.fromEntries(
    Object.entries(schema.properties ?? {}).filter(([name]) => !inPath.includes(name)),
  );
  const required = (schema.required ?? []).filter((name) => !inPath.includes(name));
  const body = { ...schema, properties, required };
  return { required: required.length > 0, content: { 'application/json': { schema: body } } };
}

function security({ access }: AnyProcedure): object[] {
  if (access === 'public') return [];
  return typeof access === 'object' ? [{ accessKey: [] }, { serviceAccountKey: [] }] : [{ accessKey: [] }];
}

function responses(procedure: AnyProcedure): object {
  const byStatus = new Map<number, ErrorCode[]>();
  for (const code of [...GENERAL_CODES, ...procedure.errors]) {
    const { status } = ERRORS[code];
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  const errors = [...byStatus]
    .sort(([a], [b]) => a - b)
    .map(([status, codes]) => [String(status), errorResponse(codes)]);
  const success = {
    description: 'Success.',
    content: { 'application/json': { schema: procedure.output } },
  };
  return { [String(procedure.status)]: success, ...Object.fromEntries(errors) };
}

function errorResponse(codes: readonly ErrorCode[]): object {
  const unique = [...new Set(codes)];
  return {
    description: unique.map((code) => `${code}: ${ERRORS[code].message}`).join(' '),
    content: {
      'application/json': { schema: { allOf: [ERROR_SCHEMA, { properties: { code: { enum: unique } } }] } },
    },
  };
}
