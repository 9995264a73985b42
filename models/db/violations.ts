// Constraints of the database that stand for an error of the contract.

/** Name of the unique or foreign key constraint that refused the statement; undefined for any other error. */
export function violatedConstraint(error: unknown): string | undefined {
  const { code, constraint, nativeError } = (error ?? {}) as {
    code?: string;
    constraint?: string;
    nativeError?: unknown;
  };
  if (code === '23505' || code === '23503') return constraint;
  return nativeError === undefined ? undefined : violatedConstraint(nativeError);
}
