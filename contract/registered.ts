// Lists of the whole contract that each resource adds its part to.

type Keys<T> = T extends unknown ? keyof T : never;
type Values<T> = T extends unknown ? T[keyof T] : never;

/** The parts as one; throws for a name that two of them have. */
export function merged<const T extends object>(parts: readonly T[]): Readonly<Record<Keys<T>, Values<T>>> {
  const all: Record<string, unknown> = {};
  for (const [name, value] of parts.flatMap((part) => Object.entries(part))) {
    if (Object.hasOwn(all, name)) throw new Error(`${name} is declared twice`);
    all[name] = value;
  }
  return all as Record<Keys<T>, Values<T>>;
}
