// What each function of the language computes, over bytes.
import { createHash } from 'node:crypto';
import type { FunctionName } from '../../../contract/expression/functions.ts';
import { type Bytes, lowerAscii, upperAscii } from './bytes.ts';
import { encodeComponent } from './percent.ts';

export type Computed = Bytes | number | boolean;

/** Functions whose arguments are values; those with patterns are in replace.ts. */
export type PlainFunction = Exclude<FunctionName, 'regex_replace' | 'wildcard_replace' | 'to_string'>;

type Arguments = readonly (Bytes | number)[];

const text = (args: Arguments, index = 0) => args[index] as Bytes;

export const COMPUTE: Readonly<Record<PlainFunction, (args: Arguments) => Computed>> = {
  lower: (args) => lowerAscii(text(args)),
  upper: (args) => upperAscii(text(args)),
  len: (args) => text(args).length,
  starts_with: (args) => text(args).startsWith(text(args, 1)),
  ends_with: (args) => text(args).endsWith(text(args, 1)),
  concat: (args) => args.join(''),
  url_decode: (args) => urlDecode(text(args)),
  url_encode: (args) => encodeComponent(text(args)),
  base64_encode: (args) => Buffer.from(text(args), 'latin1').toString('base64'),
  base64_decode: (args) => base64Decode(text(args)),
  md5: (args) => digest('md5', text(args)),
  sha1: (args) => digest('sha1', text(args)),
  sha256: (args) => digest('sha256', text(args)),
  substring: ([value, start, length]) =>
    substring(value as Bytes, start as number, (length as number | undefined) ?? Number.POSITIVE_INFINITY),
};

function urlDecode(value: Bytes): Bytes {
  return value.replace(/\+|%[0-9a-fA-F]{2}/g, (found) =>
    found === '+' ? ' ' : String.fromCharCode(Number.parseInt(found.slice(1), 16)),
  );
}

/** A path decoded once; + is itself and a broken % stays. */
export function urlDecodePath(value: Bytes): Bytes {
  return value.replace(/%[0-9a-fA-F]{2}/g, (found) => String.fromCharCode(Number.parseInt(found.slice(1), 16)));
}

/** Of either alphabet, also mixed, with all of the padding or none; bits that are left over count for nothing. */
function base64Decode(value: Bytes): Bytes {
  const data = value.replace(/={1,2}$/, '');
  const padded = data.length !== value.length;
  if (data.length % 4 === 1 || (padded && value.length % 4 !== 0) || !/^[A-Za-z0-9+/_-]*$/.test(data)) return '';
  return Buffer.from(data, 'base64').toString('latin1');
}

function digest(algorithm: 'md5' | 'sha1' | 'sha256', value: Bytes): Bytes {
  return createHash(algorithm).update(value, 'latin1').digest('hex');
}

function substring(value: Bytes, start: number, length: number): Bytes {
  const from = start < 0 ? Math.max(0, value.length + start) : start;
  return value.slice(from, from + length);
}
