// Streams are a kind of their own beside procedures: an answer that goes on, as lines of JSON, until one side ends it.
// They exist below /rpc only, for the Web UI: a key of the public API has no session that an open answer could end with.
// So they are in no OpenAPI document; the gateway derives path, access, validation and errors from the declaration.
import type { Static, TObject, TSchema } from 'typebox';
import type { ErrorCode } from './errors.ts';

export interface Stream<I extends TObject = TObject, L extends TSchema = TSchema> {
  /** Dotted name: `live.watch` is POST /rpc/live/watch. */
  readonly name: string;
  readonly method: 'POST';
  /** One English sentence. */
  readonly summary: string;
  /** The JSON body. */
  readonly input: I;
  /** One line of the answer. */
  readonly line: L;
  /** Only a session can watch; the stream ends with it and never prolongs it. */
  readonly access: 'session';
  /** Codes it can answer before the first line, beyond the general ones and CSRF_HEADER_REQUIRED. */
  readonly errors: readonly ErrorCode[];
}

// biome-ignore lint/suspicious/noExplicitAny: as in AnyProcedure
export type AnyStream = Stream<any, any>;
export type StreamInput<S> = S extends Stream<infer I, TSchema> ? Static<I> : never;
export type StreamLine<S> = S extends Stream<TObject, infer L> ? Static<L> : never;

/** Declares a stream. */
export function stream<I extends TObject, L extends TSchema>(spec: Stream<I, L>): Stream<I, L> {
  return spec;
}
