// The licence texts of everything a node package carries, as one file.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { caddySources, findGo, goEnvironment, type Target } from '../caddy.ts';
import { run } from '../commands.ts';
import { Refusal } from '../progress.ts';

/** A work of somebody else. */
export interface Work {
  name: string;
  version: string;
  /** Its licence's short name; null when only the text says it. */
  licence: string | null;
  /** Where it lies, with its licence files. */
  folder: string;
}

/** Go modules that are part of the edge's binary, and Go itself. */
export async function goModules(target: Target): Promise<Work[]> {
  const found = await findGo();
  if ('problem' in found) throw new Refusal(`${found.problem}: https://go.dev/dl/`);
  const format = '{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Version}}\t{{.Dir}}{{end}}{{end}}';
  const options = { cwd: caddySources, env: goEnvironment(target), maxBuffer: 2 ** 24 };
  const { stdout } = await run(found.go, ['list', '-deps', '-f', format, '.'], options);
  const modules = [...new Set(stdout.split('\n'))].filter((line) => line !== '').map((line) => line.split('\t'));
  const works = modules.map(([name = '', version = '', folder = '']) => ({ name, version, licence: null, folder }));
  const { stdout: own } = await run(found.go, ['env', 'GOVERSION', 'GOROOT'], options);
  const [version = '', folder = ''] = own.split('\n');
  return [...works, { name: 'Go', version, licence: 'BSD-3-Clause', folder }];
}

const LICENCE_FILE = /^(?:(?:[a-z]+[-_])?licen[cs]e|copying|notice|modifications)(?:[.-].*)?$/i;

/** One text with each work's name, version and licence texts, in order of names. */
export function licenceTexts(works: readonly Work[]): string {
  const sorted = works.toSorted((a, b) => (`${a.name} ${a.version}` < `${b.name} ${b.version}` ? -1 : 1));
  return sorted
    .map(({ name, version, licence, folder }) => {
      const title = `${name} ${version}${licence ? ` (${licence})` : ''}`;
      const texts = filesOf(folder).map((file) => readFileSync(file, 'utf8').replaceAll('\r\n', '\n').trimEnd());
      if (texts.length === 0)
        texts.push('The package has no license text of its own. See LICENSE and NOTICE beside this file.');
      return `${'='.repeat(80)}\n${title}\n${'='.repeat(80)}\n\n${texts.join('\n\n')}\n`;
    })
    .join('\n');
}

function filesOf(folder: string): string[] {
  if (folder === '' || !existsSync(folder)) return [];
  const names = readdirSync(folder).filter((name) => LICENCE_FILE.test(name));
  return names.sort().map((name) => join(folder, name));
}
