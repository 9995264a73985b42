/** Does the work for each, `limit` at a time; the first failure is thrown when what was begun has ended. */
export async function parallel<T>(items: readonly T[], limit: number, work: (item: T) => Promise<void>): Promise<void> {
  const left = [...items];
  const worker = async () => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) await work(item);
  };
  const ended = await Promise.allSettled(Array.from({ length: Math.min(limit, items.length) }, worker));
  for (const one of ended) if (one.status === 'rejected') throw one.reason;
}
