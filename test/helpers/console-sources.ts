// Sources of the Web UI as tests read them: its messages by folder and language, and the keys its files name.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../bin/lib/root.ts';

export const LANGUAGES = ['en', 'zh-CN'] as const;
export type Language = (typeof LANGUAGES)[number];

export const consoleRoot = join(root, 'console');
const source = join(consoleRoot, 'src');

export interface SourceFile {
  /** Below console/. */
  path: string;
  text: string;
}

/** Files of the Web UI that are written by hand. */
export function sourceFiles(): SourceFile[] {
  const names = readdirSync(source, { recursive: true }) as string[];
  return names
    .filter((name) => /[.](ts|vue)$/.test(name))
    .map((name) => ({ path: `src/${name}`, text: readFileSync(join(source, name), 'utf8') }));
}

/** Folders with messages: `shared`, `app`, `contract`, `attention` and those of features. */
export function messageFolders(): Map<string, string> {
  const features = readdirSync(join(source, 'features'));
  const folders = features.map((name) => [name, join(source, 'features', name, 'messages')] as const);
  const places = [
    ['app', join(source, 'app', 'messages')],
    ['shared', join(source, 'shared', 'messages')],
    ['contract', join(source, 'shared', 'contract', 'messages')],
    ['attention', join(source, 'shared', 'attention', 'messages')],
  ] as const;
  const isThere = (folder: string) => readdirSync(join(folder, '..')).includes('messages');
  return new Map([...places, ...folders].filter(([, folder]) => isThere(folder)));
}

function flatten(value: unknown, prefix: string, into: Map<string, string>): void {
  for (const [key, inner] of Object.entries(value as object)) {
    if (typeof inner === 'string') into.set(`${prefix}.${key}`, inner);
    else flatten(inner, `${prefix}.${key}`, into);
  }
}

/** Where the parts of a feature's words belong (console/src/shared/i18n/i18n.ts). */
const WORDS: Readonly<Record<string, string>> = {
  errors: 'shared.errors',
  faults: 'shared.faults',
  audit: 'contract.audit',
  reason: 'contract.reason',
  job: 'contract.job',
  attention: 'attention.kind',
};

function flattenWords(language: Language, into: Map<string, string>): void {
  for (const feature of readdirSync(join(source, 'features'))) {
    const file = join(source, 'features', feature, 'words', `${language}.json`);
    if (!existsSync(file)) continue;
    for (const [part, words] of Object.entries(JSON.parse(readFileSync(file, 'utf8')) as object)) {
      const place = WORDS[part];
      if (place === undefined) throw new Error(`${file}: ${part} belongs nowhere`);
      flatten(words, place, into);
    }
  }
}

/** All messages of a language by key, `sites.list.title`. */
export function messages(language: Language): Map<string, string> {
  const all = new Map<string, string>();
  for (const [name, folder] of messageFolders())
    flatten(JSON.parse(readFileSync(join(folder, `${language}.json`), 'utf8')), name, all);
  flattenWords(language, all);
  return all;
}
