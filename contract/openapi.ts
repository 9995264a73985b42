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
        Unmatched: {
          description: 'The path is none of the API: also a path parameter with characters that no id has.',
          type: 'object',
          properties: { error: { const: 'not_found' } },
          required: ['error'],
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
  for (const code of [...GENERAL_CODES, ...guardCodes(procedure), ...procedure.errors]) {
    const { status } = ERRORS[code];
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  const errors = [...byStatus]
    .sort(([a], [b]) => a - b)
    .map(([status, codes]) => [String(status), errorResponse(status, codes)]);
  const success = {
    description: 'Success.',
    content: { 'application/json': { schema: procedure.output } },
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
    content: { 'application/json': { schema } },
  };
}
