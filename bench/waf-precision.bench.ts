// How much of what others wrote the WAF takes for attacks: texts that Debian packages and npm packages ship, in the places of
// requests where people write. Half A of the texts is for tuning the exceptions, half B for these figures.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { caddySources, GO_TEST_TAGS } from '../bin/lib/caddy.ts';
import { unpackPackages } from '../bin/lib/debian.ts';
import { cacheDir, root } from '../bin/lib/root.ts';
import { round2 } from './lib/stats.ts';
import type { BenchContext, BenchResult } from './run.ts';

export const title = 'texts of others that the WAF takes for attacks, at paranoia 1 (Go benchmark)';

const BENCHMARK = 'BenchmarkTextsOfOthers';
const LEAST_TEXTS = 20_000;
const MOST_PROSE_PERCENT = 0.5;

/** Debian packages whose texts are sent. They are unpacked, never installed. */
const PACKAGES = [
  // Licenses, and compiled translations.
  ...['base-files', 'apt', 'dpkg', 'coreutils', 'nano', 'mutt', 'gnupg-l10n', 'gnucash-common', 'evolution-common'],
  'manpages',
  ...['de', 'es', 'fr', 'it', 'ja', 'nl', 'pl', 'pt-br', 'ru', 'tr', 'zh'].map((language) => `manpages-${language}`),
  ...['fortunes', 'fortunes-min'],
  ...['br', 'cs', 'de', 'es', 'it', 'pl', 'ru', 'zh'].map((language) => `fortunes-${language}`),
  // HTML.
  ...['debian-faq', 'debian-faq-de', 'debian-faq-fr', 'debian-faq-ja', 'debian-faq-ru', 'debian-faq-zh-cn'],
  ...['debian-history', 'debian-policy', 'debian-reference-en', 'debian-reference-es', 'debian-reference-it'],
  ...['developers-reference', 'doc-debian', 'jargon-text'],
  // Help in many languages, Perl's documentation, messages of mailing lists.
  ...['gnome-user-docs', 'perl-doc', 'spamassassin', 'git-doc'],
];

export async function run({ quick, log }: BenchContext): Promise<BenchResult> {
  const folders = [await unpackedTexts(), path.join(root, 'node_modules')];
  log('sending the texts');
  const { stdout } = await promisify(execFile)(
    'go',
    [
      'test',
      ...GO_TEST_TAGS,
      './features/waf',
      '-run',
      '^$',
      '-bench',
      `^${BENCHMARK}$/./${quick ? 'prose' : '.'}/B`,
      '-benchtime',
      '1x',
    ],
    {
      cwd: caddySources,
      env: { ...process.env, CGO_ENABLED: '0', WAF_TEXTS: folders.join(path.delimiter) },
      timeout: 1_800_000,
      maxBuffer: 1 << 24,
    },
  );
  const kinds = new Map<string, Count>();
  const sources = new Map<string, Count>();
  const line = new RegExp(`^${BENCHMARK}/(\\S+?)/(\\w+)/B\\S*\\s.*?([\\d.e+]+) refused\\s+([\\d.e+]+) texts`, 'gm');
  for (const [, source, kind, refused, texts] of stdout.matchAll(line)) {
    const count = { refused: Number(refused), texts: Number(texts) };
    sources.set(`${kind}, ${source!.replaceAll('_', ' ')}`, count);
    const { refused: r = 0, texts: t = 0 } = kinds.get(kind!) ?? {};
    kinds.set(kind!, { refused: r + count.refused, texts: t + count.texts });
  }
  const prose = kinds.get('prose');
  if (!prose) throw new Error(`no counts in:\n${stdout.slice(-2000)}`);
  return {
    figures: Object.fromEntries([...kinds, ...sources].map(([name, count]) => [name, told(count)])),
    aims: [
      { aim: `at least ${LEAST_TEXTS} texts of prose`, reached: prose.texts >= LEAST_TEXTS },
      { aim: `at most ${MOST_PROSE_PERCENT} % of prose is refused`, reached: percent(prose) <= MOST_PROSE_PERCENT },
    ],
    notes: ['"mixed" is text in which its author marks words as code', 'code is listed, and has no aim'],
    programs: { go: ['go', 'version'] },
  };
}

interface Count {
  refused: number;
  texts: number;
}

const percent = ({ refused, texts }: Count): number => (100 * refused) / texts;

const told = (count: Count): string => `${round2(percent(count))} % (${count.refused} of ${count.texts})`;

/** The folder with the packages' files, made when it is not there yet. */
async function unpackedTexts(): Promise<string> {
  const key = createHash('sha256').update(PACKAGES.join()).digest('hex').slice(0, 16);
  const folder = path.join(cacheDir, 'waf-texts', key);
  if (existsSync(folder)) return folder;
  mkdirSync(path.dirname(folder), { recursive: true });
  const temporary = mkdtempSync(`${folder}.`);
  try {
    await unpackPackages(PACKAGES, temporary);
    renameSync(temporary, folder);
  } catch (error) {
    rmSync(temporary, { recursive: true, force: true });
    throw error;
  }
  return folder;
}
