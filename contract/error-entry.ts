// One line of a list of errors: what a code answers.

export interface ErrorEntry {
  readonly status: number;
  /** English text; clients go by the code. */
  readonly message: string;
}

/** Codes of a resource, `errors` of its <name>.codes.ts. */
export type ErrorEntries = Readonly<Record<string, ErrorEntry>>;

export const entry = (status: number, message: string): ErrorEntry => ({ status, message });
