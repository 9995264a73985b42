// Registers: lists of the whole product that every feature adds to in files of its own. A file is found by its name and
// what it exports; the list of them is generated, so that types, layering and the browser's build see plain imports.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';

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

/** A list of what files declare of themselves, to be known without importing them. */
export interface Declarations {
  file: string;
  list: string;
  folder: string;
  files: RegExp;
  /** The declaration in each of them: its first group is copied. */
  declaration: RegExp;
}

export const DECLARATIONS: readonly Declarations[] = [
  {
    file: 'services/gen/roles.ts',
    list: 'ROLES_OF_SERVICES',
    folder: 'services',
    files: /^([a-z0-9-]+)\/\1[.]service[.]ts$/,
    declaration: /^export const roles: (?:readonly )?Role\[\] = \[([^\]]+)\];$/m,
  },
];

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
  {
    file: 'contract/gen/site-features.ts',
    list: 'SITE_FEATURE_LISTS',
    folder: 'contract/resources',
    files: /^[a-z0-9-]+[.]codes[.]ts$/,
    exports: /^siteFeatures$/,
  },
  {
    file: 'contract/gen/attention.ts',
    list: 'ATTENTION_LISTS',
    folder: 'contract/resources',
    files: /^[a-z0-9-]+[.]codes[.]ts$/,
    exports: /^attention$/,
  },
  {
    file: 'contract/gen/alerts.ts',
    list: 'ALERT_LISTS',
    folder: 'contract/resources',
    files: /^[a-z0-9-]+[.]codes[.]ts$/,
    exports: /^alerts$/,
  },
  {
    file: 'contract/gen/reasons.ts',
    list: 'REASON_LISTS',
    folder: 'contract/resources',
    files: /^[a-z0-9-]+[.]codes[.]ts$/,
    exports: /^reasons$/,
  },
  {
    file: 'models/gen/entry-kinds.ts',
    list: 'FOUND_KINDS',
    folder: 'models',
    files: /^[a-z0-9-]+\/[a-z0-9-]+[.]entry[.]ts$/,
    exports: /^[a-z]\w*Kind$/,
  },
  {
    file: 'services/gen/features.ts',
    list: 'FEATURES',
    folder: 'services',
    files: /^[a-z0-9-]+\/feature[.]ts$/,
    exports: /^feature$/,
  },
  {
    file: 'services/gen/node-tasks.ts',
    list: 'NODE_TASKS',
    folder: 'services',
    files: /^[a-z0-9-]+\/[a-z0-9-]+[.]task[.]ts$/,
    exports: /^[a-z]\w*Task$/,
  },
  {
    file: 'services/gen/long-jobs.ts',
    list: 'LONG_JOBS',
    folder: 'services',
    files: /^[a-z0-9-]+\/[a-z0-9-]+[.]job[.]ts$/,
    exports: /^[a-z]\w*Job$/,
  },
  {
    file: 'services/gen/dns-adapters.ts',
    list: 'DNS_ADAPTERS',
    folder: 'services/dns/adapters',
    files: /^[a-z0-9-]+\/[a-z0-9-]+[.]adapter[.]ts$/,
    exports: /^[a-z]\w*Adapter$/,
  },
  {
    file: 'agents/edge/gen/tasks.ts',
    list: 'TASK_KINDS',
    folder: 'agents/edge',
    files: /^[a-z0-9-]+\/[a-z0-9-]+[.]task[.]ts$/,
    exports: /^[a-z]\w*Task$/,
  },
  {
    file: 'agents/edge/gen/parts.ts',
    list: 'PARTS',
    folder: 'agents/edge',
    files: /^[a-z0-9-]+\/[a-z0-9-]+[.]part[.]ts$/,
    exports: /^[a-z]\w*Part$/,
  },
];

interface Found {
  /** Below the folder. */
  file: string;
  /** The name it is exported by; null: the whole file. */
  exported: string | null;
}

const BEFORE = '// Written by `npm run generate` from the files it imports. Changes here are lost.\n';
const BEFORE_DECLARED = '// Written by `npm run generate` from what services declare. Changes here are lost.\n';

/** Writes the registers in `folder` of the tree at `root` to the same folder below `out`. */
export function generateRegisters(root: string, out: string, folder: string): void {
  for (const register of REGISTERS.filter(({ file }) => dirname(file) === folder)) {
    const file = join(out, register.file);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, textOf(register, members(root, register)));
  }
  for (const declarations of DECLARATIONS.filter(({ file }) => dirname(file) === folder))
    writeFileSync(join(out, declarations.file), declaredText(root, declarations));
}

function filesOf(root: string, { folder, files }: Pick<Register, 'folder' | 'files'>): string[] {
  const names = readdirSync(join(root, folder), { recursive: true }) as string[];
  return names.filter((name) => files.test(name)).sort();
}

function declaredText(root: string, declarations: Declarations): string {
  const { folder, list, declaration } = declarations;
  const lines = filesOf(root, declarations).map((file) => {
    const declared = declaration.exec(readFileSync(join(root, folder, file), 'utf8'))?.[1];
    if (declared === undefined) throw new Error(`${folder}/${file} does not declare what ${list} holds`);
    return `  ['${dirname(file)}', [${declared}]],\n`;
  });
  return `${BEFORE_DECLARED}\nexport const ${list} = [\n${lines.join('')}] as const;\n`;
}

/** What belongs to a register, by file and then as the file has it. */
function members(root: string, register: Register): Found[] {
  const { folder, exports } = register;
  return filesOf(root, register).flatMap((file): Found[] => {
    if (exports === null) return [{ file, exported: null }];
    const text = readFileSync(join(root, folder, file), 'utf8');
    return [...text.matchAll(/^export const (\w+)/gm)]
      .map(([, exported = '']) => ({ file, exported }))
      .filter(({ exported }) => exports.test(exported));
  });
}

function textOf({ file, list, folder }: Register, found: readonly Found[]): string {
  const exported = found.map((one) => one.exported);
  // Files that all export the same name are told apart by theirs.
  const distinct = !exported.includes(null) && new Set(exported).size === exported.length;
  const nameOf = (one: Found) => (distinct ? one.exported! : camelCase(one.file));
  const imports = found.map((one) => {
    const what = one.exported === null ? `* as ${nameOf(one)}` : `{ ${asName(one.exported, nameOf(one))} }`;
    return `import ${what} from '${posix.relative(dirname(file), `${folder}/${one.file}`)}';\n`;
  });
  const names = found.map((one) => `  ${nameOf(one)},\n`).join('');
  return `${BEFORE}${imports.join('')}\nexport const ${list} = [\n${names}] as const;\n`;
}

function asName(exported: string, name: string): string {
  return exported === name ? name : `${exported} as ${name}`;
}

/** ip-lists/feature.ts, ip-lists.codes.ts -> ipLists */
function camelCase(file: string): string {
  const [name = ''] = file.split(/[./]/);
  return name.replaceAll(/-([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}
