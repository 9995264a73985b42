// A new resource as files of its own, written from the made-up one of test/made-up, which a test tries in a copy of the tree.
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Refusal } from './progress.ts';
import { root } from './root.ts';

const TEMPLATE = join(root, 'test', 'made-up');
/** Of the template, what tries it. */
const NOT_OF_IT = 'try-it.ts.txt';
/** Largest number of a migration; the template's own. */
const TEMPLATE_MIGRATION = '9999';
const NAME = /^[a-z][a-z0-9]*(-[a-z0-9]+)*s$/;
const MOST_CHARACTERS = 40;

/** A name in the forms that files, tables, types, errors and variables have. */
interface Forms {
  kebab: string;
  snake: string;
  camel: string;
  pascal: string;
}

/**
 * Writes the files of a resource into the tree and returns their paths below it. `name` is its plural in kebab-case, such
 * as `alert-rules`. Throws a Refusal for another name, and before it writes anything when one of the files is there.
 */
export function newResource(tree: string, name: string): string[] {
  if (!NAME.test(name) || name.length > MOST_CHARACTERS)
    throw new Refusal(
      `${name} is no name of a resource: use a plural in kebab-case of at most 40 characters, such as alert-rules`,
    );
  const rename = renamer(formsOf(name), formsOf(name.slice(0, -1)));
  const migration = nextMigration(tree);
  const files = readdirSync(TEMPLATE, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name !== NOT_OF_IT)
    .map((entry) => join(entry.parentPath, entry.name).slice(TEMPLATE.length + 1))
    .sort()
    .map((file) => ({
      file: rename.path(file.replace(/[.]txt$/, '')).replace(TEMPLATE_MIGRATION, migration),
      text: rename.text(readFileSync(join(TEMPLATE, file), 'utf8')),
    }));
  const there = files.find(({ file }) => existsSync(join(tree, file)));
  if (there) throw new Refusal(`${there.file} is there already: nothing was written`);
  for (const { file, text } of files) {
    mkdirSync(dirname(join(tree, file)), { recursive: true });
    writeFileSync(join(tree, file), text);
  }
  return files.map(({ file }) => file);
}

function formsOf(kebab: string): Forms {
  const words = kebab.split('-');
  const pascal = words.map((word) => word[0]!.toUpperCase() + word.slice(1)).join('');
  return { kebab, snake: words.join('_'), camel: pascal[0]!.toLowerCase() + pascal.slice(1), pascal };
}

function renamer(plural: Forms, singular: Forms) {
  const form = (which: keyof Forms) => (_: string, s: string) => (s ? plural : singular)[which];
  return {
    path: (file: string) => file.replaceAll(/Greeting(s?)/g, form('pascal')).replaceAll(/greeting(s?)/g, form('kebab')),
    text: (text: string) =>
      text
        .replaceAll(/GREETING(S?)/g, (_, s: string) => (s ? plural : singular).snake.toUpperCase())
        .replaceAll(/Greeting(s?)(?=[A-Z'`(),.;:<>[\] {}\n/]|$)/g, form('pascal'))
        // Tables, and keys of lists whose words are joined by underscores.
        .replaceAll(/(?<=sql\('|create table |"?_)greeting(s?)\b/g, form('snake'))
        .replaceAll(/\bgreeting(s?)(?=_)/g, form('snake'))
        .replaceAll(/(?<=audit: '|"audit": [{] "|recordAudit\(tx, '|type: ')greeting(s?)/g, form('snake'))
        .replaceAll(/(?<=kind: '|name: ')greeting(s?)/g, form('kebab'))
        // Names of procedures and words of the Web UI begin with the resource.
        .replaceAll(/(?<=resource\('|['"])greeting(s?)(?=[.]|'[,)])(?![.](ts|vue))/g, form('camel'))
        .replaceAll(/(?<=['"`/])greeting(s?)(?=['"`/:.]|-)/g, form('kebab'))
        .replaceAll(/(?<=-)greeting(s?)\b/g, form('kebab'))
        .replaceAll(/(?<![\w-])greeting(s?)(?=\w|\b)/g, form('camel')),
  };
}

/** Numbers of migrations have four digits. */
function nextMigration(tree: string): string {
  const folder = join(tree, 'migrations');
  const numbers = existsSync(folder) ? readdirSync(folder).flatMap((file) => /^([0-9]{4})-/.exec(file)?.[1] ?? []) : [];
  return String(Math.max(0, ...numbers.map(Number)) + 1).padStart(4, '0');
}
