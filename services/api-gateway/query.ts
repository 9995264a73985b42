// Query parameters: each once, each known, turned into the type its schema names. What cannot be turned stays text and
// is refused by the schema.
import { badField, type ErrorCode, fail } from '../../contract/errors.ts';
import type { AnyProcedure, HttpMethod } from '../../contract/procedure.ts';
import { CODE_OF_BAD_VALUE } from '../../contract/scalars/common.ts';
import { isStorable } from './json-body.ts';

/** Puts the parameters of a query into the input; throws BAD_REQUEST. */
export type QueryReader = (query: string, input: Record<string, unknown>) => void;

interface Schema {
  type?: string;
  anyOf?: Schema[];
  items?: Schema;
  [CODE_OF_BAD_VALUE]?: ErrorCode;
}

const MOST_PARAMETERS = 100;
const NUMBER = /^-?[0-9]{1,15}(\.[0-9]{1,15})?$/;

/** The reader of one procedure: only GET and DELETE take inputs from the query, and none that the path carries. */
export function queryReader(
  schema: AnyProcedure['input'],
  pathInputs: readonly string[],
  method: HttpMethod,
): QueryReader {
  const properties = schema.properties as Record<string, Schema>;
  const fromQuery = method === 'GET' || method === 'DELETE';
  const turn = new Map(
    Object.entries(properties)
      .filter(([name]) => fromQuery && !pathInputs.includes(name))
      .map(([name, property]) => [name, turner(property)]),
  );
  return (query, input) => {
    const seen = new Set<string>();
    for (const pair of query.split('&', MOST_PARAMETERS + 1)) {
      if (pair === '') continue;
      const equals = pair.indexOf('=');
      const name = decode(equals === -1 ? pair : pair.slice(0, equals));
      const text = equals === -1 ? '' : pair.slice(equals + 1);
      const path = `/${name.slice(0, 100).replaceAll('~', '~0').replaceAll('/', '~1')}`;
      const toType = turn.get(name);
      if (!toType) badField(path, 'additionalProperties', { additionalProperty: name.slice(0, 100) });
      const code = properties[name]?.[CODE_OF_BAD_VALUE];
      if (code !== undefined && (seen.has(name) || decoded(text) === null)) fail(code);
      if (seen.has(name)) badField(path, 'repeated');
      seen.add(name);
      input[name] = toType(decode(text));
    }
  };
}

/** Throws BAD_REQUEST. */
function decode(text: string): string {
  const value = unescaped(text) ?? badField('', 'queryEncoding');
  return isStorable(value) ? value : badField('', 'unicode');
}

/** Null where {@link decode} throws. */
function decoded(text: string): string | null {
  const value = unescaped(text);
  return value !== null && isStorable(value) ? value : null;
}

function unescaped(text: string): string | null {
  if (!text.includes('%') && !text.includes('+')) return text;
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return null;
  }
}

function turner(schema: Schema): (text: string) => unknown {
  const types = schema.anyOf ? schema.anyOf.map((member) => member.type) : [schema.type];
  if (types.includes('array')) {
    const item = turner(schema.items ?? {});
    return (text) => (text === '' ? [] : text.split(',').map(item));
  }
  if (types.includes('boolean')) return (text) => (text === 'true' ? true : text === 'false' ? false : text);
  if ((types.includes('integer') || types.includes('number')) && !types.includes('string')) {
    return (text) => (NUMBER.test(text) ? Number(text) : text);
  }
  return (text) => text;
}
