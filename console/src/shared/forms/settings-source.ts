// Where a form over one resource has it from.
import type { AnyProcedure, Input, Output } from '@contract/procedure.ts';
import { call } from '@/shared/api/call.ts';
import type { CallError } from '@/shared/api/call-error.ts';
import { type LoadOptions, useLoad } from '@/shared/api/use-load.ts';

export interface SettingsSource<V extends object = object> {
  /** As last answered; undefined until then. */
  readonly value: V | undefined;
  /** Inputs of the saving procedure that are no fields: { id }. */
  readonly fixed?: object;
  /** Why there is no value. */
  readonly error?: CallError | null;
  /** Reads it once more, for a conflict. */
  read(): Promise<V>;
  /** Reads it again for the page, once it was saved. */
  reload?(): unknown;
}

/** What `get` answers for an input, which the saving procedure takes as well. */
export function useSettings<P extends AnyProcedure>(
  get: P,
  input: Input<P>,
  options: LoadOptions = {},
): SettingsSource<Output<P> & object> {
  const read = (signal?: AbortSignal) => call(get, input, signal ? { signal } : {}) as Promise<Output<P> & object>;
  const { data, error, reload } = useLoad(read, options);
  return {
    get value() {
      return data.value;
    },
    get error() {
      return error.value;
    },
    fixed: input as object,
    read: () => read(),
    reload,
  };
}

/** An object that the page has already, and reads again with `reload`; `get` takes its id. */
export function objectSettings<V extends { id: string }>(
  get: AnyProcedure,
  value: () => V,
  reload: () => unknown,
): SettingsSource<V> {
  const fixed = () => ({ id: value().id });
  return {
    get value() {
      return value();
    },
    get fixed() {
      return fixed();
    },
    read: () => call(get, fixed() as never) as Promise<unknown> as Promise<V>,
    reload,
  };
}
