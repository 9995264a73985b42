// What nearly everybody fetches comes in three files each of script and style: what the sign-in needs, what the frame and
// the lists add, and what the page of an object does. One file per module would be eighty requests, six at a time, before the first row.
import { resolve } from 'node:path';

interface Graph {
  getModuleInfo(id: string): { importedIds: readonly string[] } | null;
}

/** Files in the order in which a browser comes to need them: what an earlier group holds, a later one does not repeat. */
const GROUPS: readonly { name: string; of: readonly string[] }[] = [
  { name: 'start', of: ['src/app/main.ts', 'src/features/sign-in/SignInPage.vue'] },
  { name: 'frame', of: ['src/app/frame/AppFrame.vue', 'src/features/sites/SitesPage.vue'] },
  { name: 'object', of: ['src/features/sites/SitePage.vue', 'src/features/sites/OverviewTab.vue'] },
];

/** Parts of element-plus for single pages: its index names them, which makes nobody else need them. */
const RARE = /\/element-plus\/es\/components\/(date-picker|date-picker-panel|time-picker)\/|\/dayjs\//;

interface Chunk {
  /** Chunks of a higher priority take their modules first, with all that those import. */
  priority: number;
  name(id: string, graph: Graph): string | null;
}

/** Groups for the bundler; what only some pages use stays where the bundler puts it. */
export function commonChunks(root: string): Chunk[] {
  const roots = GROUPS.map(({ of }) => of.map((file) => resolve(root, file)));
  let known: Map<string, string> | undefined;
  return GROUPS.map(({ name }, index) => ({
    priority: GROUPS.length - index,
    name(id, graph) {
      known ??= assign(roots, graph);
      return known.get(id) === name ? name : null;
    },
  }));
}

function assign(roots: readonly (readonly string[])[], graph: Graph): Map<string, string> {
  const groups = new Map<string, string>();
  for (const [index, { name }] of GROUPS.entries()) {
    const open = roots[index]!.flatMap((id) => graph.getModuleInfo(id)?.importedIds ?? []);
    for (let id = open.pop(); id !== undefined; id = open.pop()) {
      if (groups.has(id) || RARE.test(id)) continue;
      groups.set(id, name);
      open.push(...(graph.getModuleInfo(id)?.importedIds ?? []));
    }
  }
  // Pages stay files of their own.
  for (const id of roots.flat()) groups.delete(id);
  return groups;
}
