// The rooms of the repository, its top folders with TypeScript, and what leads from one to another.

/** From the lowest to the highest: a room may use those before it. */
export const ROOMS = [
  'contract',
  'proto',
  'client',
  'migrations',
  'models',
  'runtime',
  'pipeline',
  'mixins',
  'services',
  'agents',
  'console',
  'bin',
  'bench',
  'test',
] as const;

/** One import of a value; imports of types alone leave no trace at run time. */
export interface Arrow {
  from: string;
  to: string;
}

/** The part of dependency-cruiser's JSON that is read here. */
export interface Cruise {
  modules: {
    source: string;
    dependencies: { resolved: string; dependencyTypes: string[] }[];
  }[];
}

/** Index of the room a file lies in; -1 for files outside of all rooms. */
function roomOf(file: string): number {
  return ROOMS.findIndex((room) => file.startsWith(`${room}/`));
}

/** Imports of values between files of the rooms. */
export function arrows({ modules }: Cruise): Arrow[] {
  return modules.flatMap(({ source, dependencies }) =>
    dependencies
      .filter(({ resolved, dependencyTypes }) => !dependencyTypes.includes('type-only') && roomOf(resolved) >= 0)
      .map(({ resolved }) => ({ from: source, to: resolved }))
      .filter(({ from }) => roomOf(from) >= 0),
  );
}

/** Arrows that lead from a room up to a higher one. */
export function upArrows(all: readonly Arrow[]): Arrow[] {
  return all.filter(({ from, to }) => roomOf(from) < roomOf(to));
}

/** Groups of files that reach each other over imports of values. */
export function circles(all: readonly Arrow[]): string[][] {
  const targets = new Map<string, string[]>();
  for (const { from, to } of all) targets.set(from, [...(targets.get(from) ?? []), to]);
  // Tarjan's algorithm.
  const order = new Map<string, number>();
  const lowest = new Map<string, number>();
  const stack: string[] = [];
  const open = new Set<string>();
  const found: string[][] = [];
  const visit = (file: string): void => {
    order.set(file, order.size);
    lowest.set(file, order.get(file)!);
    stack.push(file);
    open.add(file);
    for (const target of targets.get(file) ?? []) {
      if (!order.has(target)) {
        visit(target);
        lowest.set(file, Math.min(lowest.get(file)!, lowest.get(target)!));
      } else if (open.has(target)) lowest.set(file, Math.min(lowest.get(file)!, order.get(target)!));
    }
    if (lowest.get(file) !== order.get(file)) return;
    const group = stack.splice(stack.indexOf(file));
    for (const each of group) open.delete(each);
    if (group.length > 1 || targets.get(file)?.includes(file)) found.push(group.sort());
  };
  for (const file of targets.keys()) if (!order.has(file)) visit(file);
  return found;
}

/** Files of each room that has any, and of each folder in it. */
export function filesPerRoom({ modules }: Cruise): { room: string; files: number; folders: Map<string, number> }[] {
  const sources = modules.map(({ source }) => source);
  return ROOMS.map((room) => {
    const own = sources.filter((file) => file.startsWith(`${room}/`));
    const folders = new Map<string, number>();
    for (const file of own) {
      const [, folder, ...rest] = file.split('/');
      const name = rest.length > 0 ? folder! : '.';
      folders.set(name, (folders.get(name) ?? 0) + 1);
    }
    return { room, files: own.length, folders };
  }).filter(({ files }) => files > 0);
}
