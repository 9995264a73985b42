import type { AnyProcedure, Input } from '@contract/procedure.ts';
import type { Measure } from '../controls/amount.ts';

/** Dotted paths into a value; a list is one value. */
type PathOf<T> = T extends readonly unknown[]
  ? never
  : T extends object
    ? { [K in keyof T & string]-?: K | `${K}.${PathOf<NonNullable<T[K]>>}` }[keyof T & string]
    : never;

/** Dotted paths of what a procedure takes. */
export type FieldPath<P extends AnyProcedure> = PathOf<Input<P>>;

/** How a field of a form is shown; what it may hold comes from the contract. */
export interface Field<Path extends string = string> {
  path: Path;
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
  /** Left out while it says no, by the values in the form; a problem in it shows it all the same. */
  shown?: (get: (path: string) => unknown) => boolean;
}

export interface FieldGroup<Path extends string = string> {
  /** Names the slot `group:<key>` above its fields. */
  key?: string;
  title?: string;
  help?: string;
  fields: readonly Field<Path>[];
  /** Left out while it says no, by the values in the form; a problem in it shows it all the same. */
  shown?: (get: (path: Path) => unknown) => boolean;
}

/** Groups of the fields that a procedure takes. */
export type GroupsOf<P extends AnyProcedure> = readonly FieldGroup<FieldPath<P>>[];
