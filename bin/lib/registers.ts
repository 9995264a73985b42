// Registers: lists of the whole product that every feature adds to in files of its own. A file is found by its name and
// what it exports; the list of them is generated, so that types, layering and the browser's build see plain imports.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

export interface Register {
  /** The generated file, relative to the root. */
  file: string;
  /** Name of the list in it. */
  list: string;
  /** Folder whose files are looked through, with the folders in it. */
  folder: string;
  /** Which of them, by the path below the folder. */
  files: RegExp;
  /** Which of their exports are listed; null: the whole file is. */
  exports: RegExp | null;
}

export const REGISTERS: readonly Register[] = [
  {
    file: 'contract/gen/resources.ts',
    list: 'RESOURCE_FILES',
    folder: 'contract/resources',
    files: /^[a-z0-9-]+[.]ts$/,
    exports: null,
  },
  {
    file: 'contract/gen/errors.ts',
    list: 'ERROR_LISTS',
    folder: 'contract/resources',
    files: /^[a-z0-9-]+[.]codes[.]ts$/,
    exports: /^errors$/,
  },
];

interface Found {
  /** Below the folder. */
  file: string;
  /** The name it is exported by; null: the whole file. */
  exported: string | null;
  /** The name it has in the list, unique. */
  name: string;
}

const BEFORE = '// Written by `npm run generate` from the files it imports. Changes here are lost.\n';

/** Writes the registers in `folder` of the tree at `root` to the same folder below `out`. */
export function generateRegisters(root: string, out: string, folder: string): void {
  for (const register of REGISTERS.filter(({ file }) => dirname(file) === folder)) {
    const file = join(out, register.file);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, textOf(register, members(root, register)));
  }
}

/** What belongs to a register, by file and then as the file has it. */
function members(root: string, { folder, files, exports }: Register): Found[] {
  const names = (readdirSync(join(root, folder), { recursive: true }) as string[]).filter((name) => files.test(name));
  return names.sort().flatMap((file): Found[] => {
    const base = camelCase(file.replace(/([.][a-z-]+)?[.]ts$/, ''));
    if (exports === null) return [{ file, exported: null, name: base }];
    const text = readFileSync(join(root, folder, file), 'utf8');
    return [...text.matchAll(/^export const (\w+)/gm)]
      .map(([, exported = '']) => exported)
      .filter((exported) => exports.test(exported))
      .map((exported) => ({ file, exported, name: `${base}${exported[0]!.toUpperCase()}${exported.slice(1)}` }));
  });
}

function textOf({ file, list, folder }: Register, found: readonly Found[]): string {
  const up = '../'.repeat(dirname(file).split('/').length);
  const imports = found.map(({ file: from, exported, name }) => {
    const what = exported === null ? `* as ${name}` : `{ ${exported} as ${name} }`;
    return `import ${what} from '${up}${folder}/${from}';\n`;
  });
  return `${BEFORE}${imports.join('')}\nexport const ${list} = [\n${found.map(({ name }) => `  ${name},\n`).join('')}] as const;\n`;
}

/** ip-lists/jobs -> ipListsJobs */
function camelCase(name: string): string {
  return name.replaceAll(/[^a-z0-9]+([a-z0-9])/gi, (_, letter: string) => letter.toUpperCase());
}
