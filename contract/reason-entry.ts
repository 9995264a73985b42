// Why a revision was published: a line of `reasons` in a resource's <name>.codes.ts.

/** English text by reason code; clients translate the code. */
export type ReasonEntries = Readonly<Record<string, string>>;
