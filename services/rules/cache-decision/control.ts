// Cache directives of a response: Cache-Control (RFC 9111, section 5.2) and CDN-Cache-Control (RFC 9213).
import type { Bytes } from '../evaluate/bytes.ts';
import type { HeaderLine } from '../evaluate/request-values.ts';
import { isToken, linesOf, membersOf, trimmed, unquoted } from './header-lines.ts';
import { dictionary } from './structured-field.ts';

/** What larger numbers of seconds count as. */
export const MAX_SECONDS = 2_147_483_647;

/** Times are in seconds; null is a directive that is missing, 0 one that is not valid. */
export interface Control {
  /** The field is there, with any directive. */
  present: boolean;
  /** Directives without a value that are there, in lower case. */
  readonly flags: Set<string>;
  readonly times: Map<string, number>;
  /** As they were written, for whoever asks why. */
  readonly written: Map<string, Bytes>;
}

const TIMES: readonly string[] = ['max-age', 's-maxage', 'stale-while-revalidate', 'stale-if-error'];
const FLAGS: readonly string[] = ['no-store', 'public', 'must-revalidate', 'proxy-revalidate', 'must-understand'];
const MAY_NAME_FIELDS: readonly string[] = ['no-cache', 'private'];

export interface Governing {
  readonly control: Control;
  /** As people write it. */
  readonly header: 'Cache-Control' | 'CDN-Cache-Control';
}

/** CDN-Cache-Control where it is valid and has a member, else Cache-Control. */
export function governing(headers: readonly HeaderLine[]): Governing {
  const targeted = linesOf(headers, 'cdn-cache-control');
  const control = targeted && targetedControl(targeted);
  if (control) return { control, header: 'CDN-Cache-Control' };
  return { control: plainControl(linesOf(headers, 'cache-control') ?? []), header: 'Cache-Control' };
}

function plainControl(lines: readonly Bytes[]): Control {
  const control = none();
  for (const member of membersOf(lines)) {
    const equals = member.indexOf('=');
    const name = (equals < 0 ? member : member.slice(0, equals)).toLowerCase();
    const value = equals < 0 ? null : member.slice(equals + 1);
    take(control, name, value, member);
  }
  return control;
}

function targetedControl(lines: readonly Bytes[]): Control | null {
  const members = dictionary(lines.join(','));
  if (!members || members.size === 0) return null;
  const control = none();
  for (const [name, { kind, text, written }] of members) {
    if (kind === 'false') continue;
    if (TIMES.includes(name)) take(control, name, kind === 'integer' ? text : '', written);
    else if (MAY_NAME_FIELDS.includes(name)) take(control, name, kind === 'string' ? text : null, written);
    else take(control, name, null, written);
  }
  return { ...control, present: true };
}

const none = (): Control => ({ present: false, flags: new Set(), times: new Map(), written: new Map() });

/** Of a time that comes more than once, the first counts. */
function take(control: Control, name: string, value: Bytes | null, written: Bytes): void {
  control.present = true;
  if (FLAGS.includes(name)) control.flags.add(name);
  else if (MAY_NAME_FIELDS.includes(name)) {
    if (namesFields(value)) return;
    control.flags.add(name);
  } else if (TIMES.includes(name)) {
    if (control.times.has(name)) return;
    control.times.set(name, secondsOf(value ?? ''));
  } else return;
  if (!control.written.has(name)) control.written.set(name, written);
}

/** Digits, as a token or quoted; 0 for anything else. */
function secondsOf(value: Bytes): number {
  const digits = value.startsWith('"') ? (unquoted(value) ?? '') : value;
  return numberOf(digits) ?? 0;
}

/** Digits alone; null for anything else. */
export function numberOf(digits: Bytes): number | null {
  return /^[0-9]+$/.test(digits) ? Math.min(Number(digits), MAX_SECONDS) : null;
}

/** A list of fields that is valid and names one: the directive is about these alone. */
function namesFields(value: Bytes | null): boolean {
  if (value === null) return false;
  const list = value.startsWith('"') ? unquoted(value) : value;
  if (list === null) return false;
  const names = list
    .split(',')
    .map(trimmed)
    .filter((name) => name !== '');
  return names.length > 0 && names.every(isToken);
}
