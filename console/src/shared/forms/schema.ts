// The part of a procedure's input schema that a field is made from. Pure data: the contract arrives as JSON Schema.

import type { Issue } from '@contract/errors.ts';
import { Errors } from 'typebox/schema';

export interface JsonSchema {
  type?: string;
  properties?: Record<string, JsonSchema>;
  items?: JsonSchema;
  anyOf?: JsonSchema[];
  const?: unknown;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  minItems?: number;
  maxItems?: number;
  pattern?: string;
  format?: string;
  default?: unknown;
}

/** Schema of the field at a dotted path; undefined when the procedure takes no such field. */
export function schemaAt(input: JsonSchema, path: string): JsonSchema | undefined {
  let schema: JsonSchema | undefined = input;
  for (const key of path.split('.')) schema = nonNull(schema)?.properties?.[key];
  return schema;
}

/** Without the null of a nullable field. */
export function nonNull(schema: JsonSchema | undefined): JsonSchema | undefined {
  const parts = schema?.anyOf?.filter((part) => part.type !== 'null');
  return parts?.length === 1 && parts[0]?.const === undefined ? parts[0] : schema;
}

/** Values of a union of literals, in the contract's order; empty for anything else. */
export function choicesOf(schema: JsonSchema | undefined): readonly (string | number | boolean)[] {
  const parts = schema?.anyOf ?? [];
  const values = parts.map((part) => part.const).filter((value) => value !== undefined);
  return values as (string | number | boolean)[];
}

export type ControlKind = 'switch' | 'number' | 'choice' | 'lines' | 'text';

export function controlOf(given: JsonSchema | undefined): ControlKind {
  const schema = nonNull(given);
  if (schema?.type === 'boolean') return 'switch';
  if (schema?.type === 'integer' || schema?.type === 'number') return 'number';
  if (schema?.type === 'array') return 'lines';
  return choicesOf(schema).length > 0 ? 'choice' : 'text';
}

/** What the contract refuses in a value, with the pointer inside it. What is missing is named where it should be. */
export function issuesOf(schema: JsonSchema, value: unknown): Issue[] {
  const [, errors] = Errors(schema as never, value);
  return errors
    .filter(({ keyword }) => keyword !== 'anyOf')
    .flatMap(({ instancePath, keyword, params: given }): Issue[] => {
      const params = given as Record<string, unknown>;
      if (keyword !== 'required') return [{ path: instancePath, keyword, params }];
      return (params.requiredProperties as string[]).map((name) => ({
        path: `${instancePath}/${name}`,
        keyword,
        params: {},
      }));
    });
}
