/** How a field of a form is shown; what it may hold comes from the contract. */
export interface Field {
  path: string;
  label: string;
  help?: string;
  /** After the input: ms, s, bytes. */
  unit?: string;
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
