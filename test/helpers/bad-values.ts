// Wrong values for every field of an input schema: another type, below and above each limit.
import { Ajv } from 'ajv';
import * as formats from 'ajv-formats';

export interface Schema {
  type?: string;
  anyOf?: Schema[];
  properties?: Record<string, Schema>;
  items?: Schema;
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  minItems?: number;
  maxItems?: number;
  [keyword: string]: unknown;
}

export interface BadValue {
  /** JSON pointer of the field that is wrong. */
  pointer: string;
  why: string;
  /** The whole input with this one field in it. */
  input: Record<string, unknown>;
}

const ajv = new Ajv({ strict: false });
(formats.default as unknown as (ajv: Ajv) => void)(ajv);

/** Longer texts and lists would be a test of patience. */
const LONGEST = 100_000;
const STRANGERS: readonly unknown[] = [12_345.5, 'text \u0000', true, { stranger: 1 }, [['stranger']], null];

/** Bad inputs for the fields of an object schema, nested ones included; `skip` names top-level fields to leave out. */
export function badValues(schema: Schema, skip: readonly string[] = []): BadValue[] {
  return Object.entries(schema.properties ?? {})
    .filter(([name]) => !skip.includes(name))
    .flatMap(([name, property]) => fieldValues(property, `/${name}`, (value) => ({ [name]: value }), 0));
}

function fieldValues(
  schema: Schema,
  pointer: string,
  wrap: (value: unknown) => Record<string, unknown>,
  depth: number,
): BadValue[] {
  const accepts = ajv.compile(schema);
  const wrong = [
    ...STRANGERS.map((value) => [`the value ${JSON.stringify(value)}`, value] as const),
    ...limits(schema),
  ];
  const own = wrong
    .filter(([, value]) => !accepts(value))
    .map(([why, value]) => ({ pointer, why, input: wrap(value) }));
  if (depth > 4) return own;
  const nested = Object.entries(schema.properties ?? {}).flatMap(([name, property]) =>
    fieldValues(property, `${pointer}/${name}`, (value) => wrap({ [name]: value }), depth + 1),
  );
  const unknown = schema.properties
    ? [{ pointer: `${pointer}/unknownField`, why: 'an unknown field', input: wrap({ unknownField: 1 }) }]
    : [];
  const items = schema.items ? fieldValues(schema.items, `${pointer}/0`, (value) => wrap([value]), depth + 1) : [];
  return [...own, ...nested, ...unknown, ...items];
}

function limits(schema: Schema): (readonly [string, unknown])[] {
  const { minLength, maxLength, minimum, maximum, minItems, maxItems } = schema;
  const values: (readonly [string, unknown])[] = [];
  if (minLength) values.push(['a shorter text', 'x'.repeat(minLength - 1)]);
  if (maxLength !== undefined && maxLength < LONGEST) values.push(['a longer text', 'x'.repeat(maxLength + 1)]);
  if (minimum !== undefined) values.push(['a smaller number', minimum - 1]);
  if (maximum !== undefined) values.push(['a larger number', maximum + 1]);
  if (schema.type === 'integer') values.push(['a fraction', (minimum ?? 0) + 0.5]);
  if (minItems) values.push(['a shorter list', []]);
  if (maxItems !== undefined && maxItems < LONGEST) values.push(['a longer list', Array(maxItems + 1).fill('x')]);
  return values;
}
