// Settings that are read and saved as a whole: GET and PUT of one path.
import type { TObject, TProperties, TSchema } from 'typebox';
import type { ErrorCode } from './errors.ts';
import { type ProcedureSpec, procedure } from './procedure.ts';
import { Input } from './scalars/common.ts';

interface SettingsSpec<K extends TProperties, C extends TProperties, G extends TSchema, S extends TSchema> {
  path: string;
  /** Inputs named in the path. */
  of: K;
  /** Summary of the GET. */
  reads: string;
  /** Summary of the PUT. */
  saves: string;
  /** Inputs of the PUT beside those of the path. */
  change: C;
  output: G;
  /** Answer of the PUT. */
  saved: S;
  audit: string;
  /** Largest body of the PUT in bytes where 1 MiB is too small. */
  bodyLimit?: number;
  /** Codes of both. */
  errors?: readonly ErrorCode[];
  /** Codes of the PUT alone. */
  saveErrors?: readonly ErrorCode[];
}

type SettingsProcedures<K extends TProperties, C extends TProperties, G extends TSchema, S extends TSchema> = {
  get: ProcedureSpec<TObject<K>, G>;
  set: ProcedureSpec<TObject<K & C>, S>;
};

/** The two procedures of such settings, for the operator; a read-only key may read them. */
export function settings<K extends TProperties, C extends TProperties, G extends TSchema, S extends TSchema>(
  spec: SettingsSpec<K, C, G, S>,
): SettingsProcedures<K, C, G, S> {
  const { path, errors = [], saveErrors = [] } = spec;
  const both = { path, status: 200, access: 'operator', idempotency: 'accepted' } as const;
  return {
    get: procedure({
      ...both,
      method: 'GET',
      summary: spec.reads,
      input: Input(spec.of),
      output: spec.output,
      readOnly: true,
      audit: null,
      errors: [...errors],
    }),
    set: procedure({
      ...both,
      method: 'PUT',
      summary: spec.saves,
      input: Input({ ...spec.of, ...spec.change }) as TObject<K & C>,
      output: spec.saved,
      readOnly: false,
      audit: spec.audit,
      ...(spec.bodyLimit === undefined ? {} : { bodyLimit: spec.bodyLimit }),
      errors: [...errors, ...saveErrors],
    }),
  };
}
