/** Rows of a page; page and size are validated and defaulted by the contract. */
export function pageOf(input: { page?: number; pageSize?: number }): { limit: number; offset: number } {
  const { page = 1, pageSize = 50 } = input;
  return { limit: pageSize, offset: (page - 1) * pageSize };
}
