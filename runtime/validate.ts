// Compiled ajv validators of each procedure, made at first use. Schemas never enter Moleculer's action definitions: they
// would travel in every INFO packet.
import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import * as formats from 'ajv-formats';
import { type ErrorCode, fail, type Issue } from '../contract/errors.ts';
import type { AnyProcedure } from '../contract/procedure.ts';
import { CODE_OF_BAD_VALUE } from '../contract/scalars/common.ts';
import { withTags } from './tagged-unions.ts';

const MAX_ISSUES = 20;
/**
 * Characters of an input whose mistakes are all told. Of a larger one only the first is: there could be as many as it has
 * values, and what is too long would be looked through all the same.
 */
const LARGE = 100_000;
/** A value costs more than a character: lists are compared with themselves. */
const VALUE = 20;

const FIRST = validators(false);
const ALL = validators(true);

/** The validator of a procedure that ends at the first mistake, or tells all. */
function validators(allErrors: boolean): (procedure: Pick<AnyProcedure, 'input'>) => ValidateFunction {
  const ajv = new Ajv({ allErrors, useDefaults: true, strict: false, ownProperties: true, discriminator: true });
  (formats.default as unknown as { default?: (ajv: Ajv) => void } & ((ajv: Ajv) => void))(ajv);
  const compiled = new WeakMap<object, ValidateFunction>();
  return (procedure) => {
    const validate = compiled.get(procedure) ?? ajv.compile(withTags(procedure.input));
    compiled.set(procedure, validate);
    return validate;
  };
}

/** The input with defaults filled in, or BAD_REQUEST with up to 20 issues. */
export function validateInput(procedure: Pick<AnyProcedure, 'input'>, input: unknown): unknown {
  const value = structuredClone(input ?? {});
  const valid = FIRST(procedure);
  if (!valid(value)) {
    const told = room(value, LARGE) < 0 ? valid : ALL(procedure);
    if (told !== valid) told(value);
    refuse(procedure, (told.errors ?? []).slice(0, MAX_ISSUES).map(toIssue));
  }
  if (!isStorable(value)) refuse(procedure, textIssues(value, '').slice(0, MAX_ISSUES));
  return value;
}

/** BAD_REQUEST, or the code of the one field that is wrong if its schema has one. */
function refuse({ input }: Pick<AnyProcedure, 'input'>, issues: Issue[]): never {
  const [path, ...more] = new Set(issues.map((issue) => issue.path));
  const property = input.properties[path?.slice(1) ?? ''] as { [CODE_OF_BAD_VALUE]?: ErrorCode } | undefined;
  const code = more.length === 0 ? property?.[CODE_OF_BAD_VALUE] : undefined;
  return code === undefined ? fail('BAD_REQUEST', { issues }) : fail(code);
}

/** What is left of `limit` after a value and what is in it; negative when it is larger. */
function room(value: unknown, limit: number): number {
  let left = limit - VALUE;
  if (typeof value === 'string') return left - value.length;
  if (typeof value !== 'object' || value === null) return left;
  for (const [key, part] of Object.entries(value)) {
    left = room(part, left - key.length);
    if (left < 0) break;
  }
  return left;
}

/** Whether the database can hold every text: none has NUL, or half of a surrogate pair. */
function isStorable(value: unknown): boolean {
  if (typeof value === 'string') return !value.includes('\0') && value.isWellFormed();
  return typeof value !== 'object' || value === null || Object.values(value).every(isStorable);
}

/** Where the texts are that it cannot. */
function textIssues(value: unknown, path: string): Issue[] {
  if (typeof value === 'string') return isStorable(value) ? [] : [{ path, keyword: 'text', params: {} }];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, part]) => textIssues(part, `${path}/${escapePointer(key)}`));
}

function toIssue(error: ErrorObject): Issue {
  // The value of a tag is the client's, of any size.
  const { tagValue: _, ...params } = error.params as Record<string, unknown>;
  // The field a client looks for is the unknown or missing one, or the tag, not the object around it.
  const named = params.additionalProperty ?? params.missingProperty ?? params.tag;
  const path = typeof named === 'string' ? `${error.instancePath}/${escapePointer(named)}` : error.instancePath;
  return { path, keyword: error.keyword, params };
}

function escapePointer(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}
