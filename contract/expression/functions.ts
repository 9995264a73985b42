// Every function of the language: its arguments, its result, where it may stand and what it needs.
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: replacements name their captures so
import type { ExpressionCapability } from './capabilities.ts';
import { MAX_SUBSTRING } from './limits.ts';
import type { ValueType } from './tree.ts';

/**
 * What an argument may be. `string`: a literal, or a field or function of that type; `any`: a string literal, or a field
 * or function of any type; the others are literals of their own syntax.
 */
export type ArgumentSpec =
  | { readonly kind: 'string' | 'any' | 'pattern' | 'glob' | 'replacement' | 'flags' }
  | { readonly kind: 'integer'; readonly min: number; readonly max: number };

export interface FunctionSpec {
  readonly returns: ValueType;
  /** As many as there can be. */
  readonly args: readonly ArgumentSpec[];
  /** How many of them have to be there. */
  readonly required: number;
  /** Stands in value expressions only, and once in each. */
  readonly valueOnly: boolean;
  readonly needs: readonly ExpressionCapability[];
  /** How it is called. */
  readonly signature: string;
  readonly summary: string;
  readonly example: string;
}

const STRING = { kind: 'string' } as const;

const define = (
  signature: string,
  args: readonly ArgumentSpec[],
  returns: ValueType,
  summary: string,
  example: string,
  rest: Partial<Pick<FunctionSpec, 'required' | 'valueOnly' | 'needs'>> = {},
): FunctionSpec => ({
  signature,
  args,
  returns,
  summary,
  example,
  required: args.length,
  valueOnly: false,
  needs: ['rules-v2'],
  ...rest,
});

const V3 = { needs: ['rules-v2', 'rules-v3'] } as const;

const TABLE = {
  lower: define('lower(s)', [STRING], 'string', 'A to Z converted to lower case.', 'lower(http.host) eq "example.com"'),
  upper: define(
    'upper(s)',
    [STRING],
    'string',
    'a to z converted to upper case.',
    'upper(http.request.method) eq "GET"',
  ),
  len: define('len(s)', [STRING], 'number', 'Length in bytes.', 'len(http.request.uri.query) gt 1024'),
  starts_with: define(
    'starts_with(s, start)',
    [STRING, STRING],
    'boolean',
    'Whether the string starts with the other; always true for "".',
    'starts_with(http.request.uri.path, "/api/")',
  ),
  ends_with: define(
    'ends_with(s, end)',
    [STRING, STRING],
    'boolean',
    'Whether the string ends with the other; always true for "".',
    'ends_with(http.request.uri.path, ".php")',
  ),
  concat: define(
    'concat(s, s, …)',
    Array.from({ length: 8 }, () => STRING),
    'string',
    'Joins 2 to 8 strings.',
    'concat("/v2", http.request.uri.path)',
    { required: 2 },
  ),
  url_decode: define(
    'url_decode(s)',
    [STRING],
    'string',
    'Decoded once: %XX to a byte and + to a space; an invalid % stays.',
    'url_decode(http.request.uri.query) contains "<script"',
  ),
  url_encode: define(
    'url_encode(s)',
    [STRING],
    'string',
    'Every byte except letters, digits and - . _ ~ as %XX.',
    'concat("/?from=", url_encode(http.request.uri))',
    V3,
  ),
  base64_encode: define(
    'base64_encode(s)',
    [STRING],
    'string',
    'Base64 with padding.',
    'base64_encode(http.request.uri.path)',
    V3,
  ),
  base64_decode: define(
    'base64_decode(s)',
    [STRING],
    'string',
    'Decoded from standard or URL-safe base64, padded or not; "" if it is not base64.',
    'base64_decode(http.request.cookies["who"]) contains "admin"',
    V3,
  ),
  md5: define('md5(s)', [STRING], 'string', 'MD5 in hex, lower case.', 'md5(http.user_agent)', V3),
  sha1: define('sha1(s)', [STRING], 'string', 'SHA-1 in hex, lower case.', 'sha1(http.user_agent)', V3),
  sha256: define('sha256(s)', [STRING], 'string', 'SHA-256 in hex, lower case.', 'sha256(http.user_agent)', V3),
  substring: define(
    'substring(s, start[, length])',
    [
      STRING,
      { kind: 'integer', min: -MAX_SUBSTRING, max: MAX_SUBSTRING },
      { kind: 'integer', min: 0, max: MAX_SUBSTRING },
    ],
    'string',
    'Bytes from an offset; a negative offset counts from the end; "" past the end.',
    'substring(http.request.uri.path, 1, 2) eq "de"',
    { ...V3, required: 2 },
  ),
  to_string: define(
    'to_string(v)',
    [{ kind: 'any' }],
    'string',
    'Numbers in decimal, booleans as true or false, addresses as text.',
    'concat("ip-", to_string(ip.src))',
    V3,
  ),
  regex_replace: define(
    'regex_replace(s, pattern, replacement)',
    [STRING, { kind: 'pattern' }, { kind: 'replacement' }],
    'string',
    'Replaces the first match; ${1} to ${8} stand for its groups. Returns the string itself without a match.',
    'regex_replace(http.request.uri.path, "^/old/(.*)$", "/new/${1}")',
    { ...V3, valueOnly: true },
  ),
  wildcard_replace: define(
    'wildcard_replace(s, glob, replacement[, "s"])',
    [STRING, { kind: 'glob' }, { kind: 'replacement' }, { kind: 'flags' }],
    'string',
    'Returns the replacement if the whole string matches, else the string itself; ${1} to ${8} stand for ' +
      'the stars. With "s" the match is case-sensitive.',
    'wildcard_replace(http.request.uri.path, "/old/*", "/new/${1}")',
    { ...V3, valueOnly: true, required: 3 },
  ),
} as const satisfies Record<string, FunctionSpec>;

export type FunctionName = keyof typeof TABLE;

export const FUNCTIONS: ReadonlyMap<string, FunctionSpec & { readonly function: FunctionName }> = new Map(
  Object.entries<FunctionSpec>(TABLE).map(([name, spec]) => [name, { ...spec, function: name as FunctionName }]),
);
