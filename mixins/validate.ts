// One compiled ajv validator per procedure, made at first use. Schemas never enter Moleculer's action definitions: they
// would travel in every INFO packet.
import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import * as formats from 'ajv-formats';
import { fail, type Issue } from '../contract/errors.ts';
import type { AnyProcedure } from '../contract/procedure.ts';

const MAX_ISSUES = 20;

const ajv = new Ajv({ allErrors: true, useDefaults: true, strict: false, ownProperties: true });
(formats.default as unknown as { default?: (ajv: Ajv) => void } & ((ajv: Ajv) => void))(ajv);

const validators = new WeakMap<object, ValidateFunction>();

/** The input with defaults filled in, or BAD_REQUEST with up to 20 issues. */
export function validateInput(procedure: Pick<AnyProcedure, 'input'>, input: unknown): unknown {
  let validate = validators.get(procedure);
  if (!validate) {
    validate = ajv.compile(procedure.input);
    validators.set(procedure, validate);
  }
  const value = structuredClone(input ?? {});
  if (!validate(value)) fail('BAD_REQUEST', { issues: (validate.errors ?? []).slice(0, MAX_ISSUES).map(toIssue) });
  const badText = textIssues(value, '');
  if (badText.length > 0) fail('BAD_REQUEST', { issues: badText.slice(0, MAX_ISSUES) });
  return value;
}

/** Texts that the database cannot hold: with NUL, or with half of a surrogate pair. */
function textIssues(value: unknown, path: string): Issue[] {
  if (typeof value === 'string') {
    return value.includes('\0') || !value.isWellFormed() ? [{ path, keyword: 'text', params: {} }] : [];
  }
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, part]) => textIssues(part, `${path}/${escapePointer(key)}`));
}

function toIssue(error: ErrorObject): Issue {
  const params = error.params as Record<string, unknown>;
  // The field a client looks for is the unknown or missing one, not the object around it.
  const named = params.additionalProperty ?? params.missingProperty;
  const path = typeof named === 'string' ? `${error.instancePath}/${escapePointer(named)}` : error.instancePath;
  return { path, keyword: error.keyword, params };
}

function escapePointer(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}
