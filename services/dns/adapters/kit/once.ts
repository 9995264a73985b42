// Finds something once for the life of an adapter, such as the id of its zone; a failure is not remembered.
export function once<T>(find: (signal: AbortSignal) => Promise<T>): (signal: AbortSignal) => Promise<T> {
  let found: { value: T } | null = null;
  return async (signal) => {
    found ??= { value: await find(signal) };
    return found.value;
  };
}
