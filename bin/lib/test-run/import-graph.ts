// Who imports whom in the repository's TypeScript, as it is written: relative imports, dynamic ones, too.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { root, SOURCE_FOLDERS } from '../root.ts';

/** What tests pages is found by the names of their folders. */
const FOLDERS = SOURCE_FOLDERS.filter((folder) => folder !== 'console');
const IMPORT = /(?:from|import)\s*\(?\s*'(\.{1,2}\/[^']+)'/g;

/** Files that each file imports, both as paths from the root. */
export type Imports = ReadonlyMap<string, readonly string[]>;

/** Reads all sources: the imports of each. */
export function readImports(): Imports {
  const imports = new Map<string, readonly string[]>();
  for (const folder of FOLDERS) {
    const path = join(root, folder);
    if (!existsSync(path)) continue;
    for (const name of readdirSync(path, { recursive: true }) as string[]) {
      if (!/\.(ts|js|mjs)$/.test(name) || name.includes('node_modules')) continue;
      const file = `${folder}/${name}`;
      imports.set(file, importsOf(file, readFileSync(join(root, file), 'utf8')));
    }
  }
  return imports;
}

/** Paths that a source names in its imports. */
export function importsOf(file: string, source: string): string[] {
  return [...source.matchAll(IMPORT)].map(([, to]) => normalize(join(dirname(file), to!)));
}

/** The files, and all that reach one of them over imports; from the nearest to the farthest. */
export function reaching(imports: Imports, files: Iterable<string>): Map<string, number> {
  const importers = new Map<string, string[]>();
  for (const [file, targets] of imports)
    for (const target of targets) importers.set(target, [...(importers.get(target) ?? []), file]);
  const distance = new Map([...files].map((file) => [file, 0]));
  for (const [file, steps] of distance)
    for (const importer of importers.get(file) ?? []) if (!distance.has(importer)) distance.set(importer, steps + 1);
  return distance;
}
