// Command-line options: every option has one declaration from which parsing, the environment variable SVC_<NAME> and the
// help text follow. The command line wins over the environment.
import { parseArgs } from 'node:util';

export interface OptionSpec {
  /** Long name without dashes. */
  name: string;
  kind: 'text' | 'integer' | 'list' | 'flag' | 'choice';
  /** One sentence; units belong here. */
  help: string;
  /** Shown in the help in place of the value. */
  placeholder?: string;
  default?: string | number | readonly string[];
  min?: number;
  max?: number;
  choices?: readonly string[];
  aliases?: readonly string[];
  /** Returns why a value is refused, or undefined. */
  check?: (value: string) => string | undefined;
  secret?: boolean;
}

export type OptionValue = string | number | boolean | readonly string[] | undefined;

/** A mistake of whoever typed the command: the process prints it and ends with exit code 2. */
export class UsageError extends Error {
  override name = 'UsageError';
}

export function environmentName(option: string): string {
  return `SVC_${option.toUpperCase().replaceAll('-', '_')}`;
}

/** Values by option name, or `help: true`. Throws UsageError for anything unknown, missing or out of range. */
export function parseOptions(
  specs: readonly OptionSpec[],
  argv: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): { help: boolean; values: Map<string, OptionValue> } {
  const config: Record<string, { type: 'string' | 'boolean'; multiple: boolean; short?: string }> = {
    help: { type: 'boolean', multiple: false, short: 'h' },
  };
  for (const spec of specs) {
    for (const name of [spec.name, ...(spec.aliases ?? [])]) {
      config[name] = { type: spec.kind === 'flag' ? 'boolean' : 'string', multiple: true };
    }
  }
  let parsed: Record<string, string | boolean | (string | boolean)[] | undefined>;
  try {
    parsed = parseArgs({ args: [...argv], options: config, strict: true, allowPositionals: false }).values;
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
  const values = new Map<string, OptionValue>();
  if (parsed.help === true) return { help: true, values };
  for (const spec of specs) {
    const given = [spec.name, ...(spec.aliases ?? [])].flatMap((name) => (parsed[name] ?? []) as (string | boolean)[]);
    values.set(spec.name, given.length > 0 ? fromCommandLine(spec, given) : fromEnvironment(spec, environment));
  }
  return { help: false, values };
}

function fromCommandLine(spec: OptionSpec, given: (string | boolean)[]): OptionValue {
  const label = `--${spec.name}`;
  if (spec.kind === 'flag') return true;
  const texts = given.map(String);
  if (spec.kind === 'list') return texts.flatMap(splitList).map((text) => checked(spec, label, text));
  if (texts.length > 1) throw new UsageError(`${label} was given ${texts.length} times; give it once`);
  return typed(spec, label, texts[0]!);
}

function fromEnvironment(spec: OptionSpec, environment: Readonly<Record<string, string | undefined>>): OptionValue {
  const label = environmentName(spec.name);
  const text = environment[label];
  if (text === undefined || text === '') return spec.kind === 'flag' ? false : spec.default;
  if (spec.kind === 'flag') {
    if (!['0', '1', 'true', 'false'].includes(text)) throw new UsageError(`${label} must be 1 or 0`);
    return text === '1' || text === 'true';
  }
  if (spec.kind === 'list') return splitList(text).map((item) => checked(spec, label, item));
  return typed(spec, label, text);
}

function splitList(text: string): string[] {
  return text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
}

function typed(spec: OptionSpec, label: string, text: string): string | number {
  if (spec.kind === 'integer') {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
    const { min = 0, max = Number.MAX_SAFE_INTEGER } = spec;
    if (!(value >= min && value <= max)) throw new UsageError(`${label} must be a whole number from ${min} to ${max}`);
    return value;
  }
  if (spec.kind === 'choice' && !spec.choices!.includes(text)) {
    throw new UsageError(`${label} must be one of: ${spec.choices!.join(', ')}`);
  }
  return checked(spec, label, text);
}

function checked(spec: OptionSpec, label: string, text: string): string {
  if (text === '') throw new UsageError(`${label} must not be empty`);
  const problem = spec.check?.(text);
  if (problem !== undefined) throw new UsageError(`${label}: ${problem}`);
  return text;
}

/** Lines of the help text for these options, with defaults and environment names. */
export function describeOptions(specs: readonly OptionSpec[]): string {
  return specs
    .map((spec) => {
      const value =
        spec.kind === 'flag' ? '' : ` ${spec.placeholder ?? (spec.choices?.join('|') || spec.kind.toUpperCase())}`;
      const notes = [spec.help];
      if (spec.kind === 'list') notes.push('May be repeated.');
      if (spec.min !== undefined && spec.max !== undefined) notes.push(`${spec.min} to ${spec.max}.`);
      if (spec.default !== undefined && [spec.default].flat().length > 0)
        notes.push(`Default: ${[spec.default].flat().join(', ')}.`);
      if (spec.aliases?.length) notes.push(`Also --${spec.aliases.join(', --')}.`);
      return `  --${spec.name}${value}\n      ${notes.join(' ')} [${environmentName(spec.name)}]`;
    })
    .join('\n');
}
