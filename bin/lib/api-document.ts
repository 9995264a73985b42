// The OpenAPI document as generators of text and code read it.
import type { JsonSchema } from '../../contract/examples.ts';

interface Media {
  schema: JsonSchema;
  example: unknown;
}

export interface ApiParameter {
  name: string;
  in: 'path' | 'query' | 'header';
  required: boolean;
  schema: JsonSchema;
  description?: string;
  example?: unknown;
}

export interface ApiOperation {
  operationId: string;
  summary: string;
  description: string;
  tags: string[];
  security: Record<string, string[]>[];
  parameters?: ApiParameter[];
  requestBody?: { content: { 'application/json': Media } };
  /** Of success by its own type, of errors always JSON. */
  responses: Record<string, { description: string; content: Record<string, Media> }>;
}

export interface ApiDocument {
  paths: Record<string, Record<string, ApiOperation>>;
  components: { schemas: Record<string, JsonSchema> };
}

/** An operation with what the document keeps around it or inside it. */
export interface Endpoint {
  method: string;
  path: string;
  operation: ApiOperation;
  parameters: ApiParameter[];
  body: Media | null;
  /** Status and body of success. */
  status: string;
  success: Media;
  /** Type of the body of success. */
  media: string;
  /** Codes by status, as the declaration has them. */
  errors: { status: string; codes: string[] }[];
}

/** Public address in what is generated; a running console puts its own into its document. */
export const EXAMPLE_URL = 'https://console.example';

/** The document of the contract. */
export async function apiDocument(): Promise<ApiDocument> {
  const { openApi } = await import('../../contract/openapi.ts');
  const { PROCEDURES } = await import('../../contract/index.ts');
  return openApi(PROCEDURES.values(), { server: `${EXAMPLE_URL}/api/v1`, version: 'dev' }) as ApiDocument;
}

/** All operations, in the order of the document. */
export function endpoints(document: ApiDocument): Endpoint[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => {
      const [status] = Object.keys(operation.responses).filter((each) => each.startsWith('2')) as [string];
      const [[media, success]] = Object.entries(operation.responses[status]!.content) as [[string, Media]];
      const failing = Object.entries(operation.responses).filter(([each]) => each !== status);
      return {
        method: method.toUpperCase(),
        path,
        operation,
        parameters: operation.parameters ?? [],
        body: operation.requestBody?.content['application/json'] ?? null,
        status,
        success,
        media,
        errors: failing.map(([each, response]) => ({
          status: each,
          codes: codesOf(response.content['application/json']!.schema),
        })),
      };
    }),
  );
}

function codesOf(schema: JsonSchema): string[] {
  const error = schema.anyOf?.[0] ?? schema;
  const [, narrowed] = error.allOf as readonly JsonSchema[];
  return [...(narrowed!.properties!.code!.enum as string[])];
}

/** Name of the object that a schema refers to. */
export function referred(schema: JsonSchema): string | undefined {
  return typeof schema.$ref === 'string' ? schema.$ref.split('/').at(-1) : undefined;
}
