// A preset in a form: which one its values are, and its values put in. Fields keep their own names below a prefix.
import { type Preset, presetOf } from '@contract/presets.ts';

type Read = (path: string) => unknown;

/** The preset whose values a form has; null = custom. */
export function presetIn<T extends object>(
  presets: Readonly<Record<Preset, T>>,
  prefix: string,
  get: Read,
): Preset | null {
  const names = Object.keys(presets.standard) as (keyof T & string)[];
  return presetOf(presets, Object.fromEntries(names.map((name) => [name, get(`${prefix}${name}`)])) as T);
}

export function putPreset(values: object, prefix: string, set: (path: string, value: unknown) => void): void {
  for (const [name, value] of Object.entries(values)) set(`${prefix}${name}`, value);
}
