// Schemas that many resources share.
import Type, { type TSchema } from 'typebox';

export const Id = Type.String({ minLength: 1, maxLength: 64, description: 'ID.' });
export const Timestamp = Type.String({
  format: 'date-time',
  description: 'ISO 8601, UTC. Example: 2026-01-01T00:05:00Z.',
});
export const Nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);
/** Pattern of one line of text: no control characters, not blank. Blanks end where the rest begins, so none is read twice. */
export const ONE_LINE = '^[^\\S\\u0000-\\u001f\\u007f]*[^\\s\\u0000-\\u001f\\u007f][^\\u0000-\\u001f\\u007f]*$';
/** One of the given words. */
export const OneOf = <T extends string>(values: readonly T[], options: { description?: string } = {}) =>
  Type.Unsafe<T>(
    Type.Union(
      values.map((value) => Type.Literal(value)),
      options,
    ),
  );
/** 64-bit numbers travel as decimal strings. */
export const Decimal = Type.String({
  pattern: '^[0-9]{1,20}$',
  description: 'Decimal number as a string. Example: 42.',
});
/** Name of the schema keyword with the code of the refusal of a bad value, in place of BAD_REQUEST. */
export const CODE_OF_BAD_VALUE = 'x-error-code';
/** A cursor of a list. Every bad one gets the code of the list, also one that is too long or cannot be decoded. */
export const PageCursor = (code: string, description: string) =>
  Type.String({ description, [CODE_OF_BAD_VALUE]: code });
export const Empty = Type.Object({}, { additionalProperties: false });
/** An input object: unknown fields are refused with their name. */
export const Input: typeof Type.Object = ((properties: Parameters<typeof Type.Object>[0], options = {}) =>
  Type.Object(properties, { additionalProperties: false, ...options })) as typeof Type.Object;

/** The optional optimistic lock of a write: another current value answers UPDATED_AT_MISMATCH. */
export const ExpectedUpdatedAt = Type.Optional({
  ...Timestamp,
  description:
    '`updatedAt` that you last read. If the resource changed since, the call fails with UPDATED_AT_MISMATCH.',
});

export const PageQuery = (pageSize: number) => ({
  page: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000, default: 1, description: 'Page, from 1.' })),
  pageSize: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 100, default: pageSize, description: 'Items per page.' }),
  ),
});

/** Narrows a list by a text; `what` says where it is looked for. */
export const SearchQuery = (what: string) => ({
  search: Type.Optional(Type.String({ maxLength: 100, pattern: '^[^\\u0000-\\u001f\\u007f]*$', description: what })),
});

/** The order of a list: one of the fields, or -field from the last to the first. */
export const SortQuery = <T extends string>(fields: readonly T[]) => ({
  sort: Type.Optional(
    OneOf<T | `-${T}`>([...fields, ...fields.map((field) => `-${field}` as const)], {
      description: 'Field to sort by, ascending; with a leading -, descending.',
    }),
  ),
});

export const Page = <T extends TSchema>(item: T) =>
  Type.Object({
    items: Type.Array(item),
    total: Type.Integer({ minimum: 0, description: 'Number of items on all pages.' }),
  });
