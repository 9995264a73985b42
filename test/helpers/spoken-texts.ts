// Texts that people read, with the place where each is written.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../bin/lib/root.ts';
import type { Area } from './language-rules.ts';
import { sentencesOf } from './sentences.ts';

export interface Spoken {
  area: Area;
  file: string;
  line: number;
  text: string;
  /** Without its code spans. */
  plain: string;
}

const filesIn = (folder: string, wanted: RegExp) =>
  (readdirSync(join(root, folder), { recursive: true }) as string[])
    .filter((name) => wanted.test(name))
    .map((name) => `${folder}/${name}`);
const read = (file: string) => readFileSync(join(root, file), 'utf8');
const lineAt = (text: string, at: number) => text.slice(0, at).split('\n').length;

/** Comments come first, so that quotes in them open nothing. */
const LITERAL = /\/\/[^\n]*|\/\*[\s\S]*?\*\/|'((?:[^'\\\n]|\\.)*)'|"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`/g;
/** Three words at least: names, paths and types are none. */
const PROSE = /^[^\s{}<>/=]+ [^\s]+ \S/;

/** Summaries, descriptions and messages: every literal of the contract that is prose. */
export function contractTexts(): Spoken[] {
  return filesIn('contract', /^(?!gen\/)[^/]*(?<!examples)[.]ts$|^(resources|scalars|expression)\/.*[.]ts$/).flatMap(
    (file) => {
      const source = read(file);
      return [...source.matchAll(LITERAL)].flatMap((match) => {
        const literal = match[1] ?? match[2] ?? match[3];
        if (literal === undefined || !PROSE.test(literal)) return [];
        const line = lineAt(source, match.index);
        return sentencesOf(literal.replaceAll(/\\(.)/g, '$1').replaceAll('\n', ' ')).map(({ text, plain }) => ({
          area: 'contract' as const,
          file,
          line,
          text,
          plain,
        }));
      });
    },
  );
}

/** Has the reasons of exclusions in both languages. */
const PACKS = 'contract/waf-packs.json';

/** Values of both languages; a line of these files has one value. */
export function localeTexts(): Spoken[] {
  const files = filesIn('console/src', /(^|\/)(messages|words)\/(en|zh-CN)[.]json$/);
  return [...files, PACKS].flatMap((file) => {
    return read(file)
      .split('\n')
      .flatMap((row, index) => {
        const [, key, value] = /^\s*"([^"]*)": ("(?:[^"\\]|\\.)*"),?$/.exec(row) ?? [];
        const language = file === PACKS ? key : /(en|zh-CN)[.]json$/.exec(file)![1];
        if (value === undefined || (language !== 'en' && language !== 'zh-CN')) return [];
        const area: Area = language;
        return (JSON.parse(value) as string)
          .replaceAll(/\{[^}]*\}/g, 'Value')
          .split(' | ')
          .flatMap((text) => sentencesOf(text))
          .map(({ text, plain }) => ({ area, file, line: index + 1, text, plain }));
      });
  });
}

export function documentTexts(files: readonly string[]): Spoken[] {
  return files.flatMap((file) =>
    sentencesOf(read(file)).map(({ line, text, plain }) => ({ area: 'documents' as const, file, line, text, plain })),
  );
}
