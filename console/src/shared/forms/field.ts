import type { Measure } from '../controls/amount.ts';

/** How a field of a form is shown; what it may hold comes from the contract. */
export interface Field {
  path: string;
  label: string;
  help?: string;
  /** What the number counts, said after the input: requests/s, days. */
  unit?: string;
  /** A time or a size: typed as "30 min" or "100 MiB". */
  measure?: Measure;
  /** Words of a choice's values. */
  choices?: Readonly<Record<string, string>>;
  /** Shown where the field is empty, such as what an empty one means. */
  placeholder?: string;
}

export interface FieldGroup {
  /** Names the slot `group:<key>` above its fields. */
  key?: string;
  title?: string;
  help?: string;
  fields: readonly Field[];
  /** Left out while it says no, by the values in the form; a problem in it shows it all the same. */
  shown?: (get: (path: string) => unknown) => boolean;
}
