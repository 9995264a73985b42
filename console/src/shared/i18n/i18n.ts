// Messages by feature folder: `t('bans.create.title')` is `create.title` of features/bans/messages/<locale>.json. A
// folder's messages are loaded with its first page and again when the language changes; those of app and shared are
// there from the start, and with them the words of every feature for what all pages show: its codes, reasons, audit
// actions and what needs somebody (`words/<locale>.json`).
import { createI18n } from 'vue-i18n';
import { isLocale, type Locale, STORED, type Text } from './locale.ts';
import type { Words } from './words.ts';

type MessageModule = { default: Record<string, string> };
const FILES = import.meta.glob<MessageModule>([
  '/src/features/*/messages/*.json',
  '/src/app/messages/*.json',
  '/src/shared/messages/*.json',
  '/src/shared/changes/messages/*.json',
  '/src/shared/contract/messages/*.json',
  '/src/shared/attention/messages/*.json',
]);
/** One file for all features, each language by itself. */
const WORDS: Readonly<Record<Locale, () => Promise<{ words: readonly Words[] }>>> = {
  en: () => import('./words-en.ts'),
  'zh-CN': () => import('./words-zh-cn.ts'),
};

/**
 * Folders that are no feature. `contract`: audit actions, revision reasons and other words of the contract; `changes`: what
 * a save changed; `attention`: what needs somebody.
 */
const PLACES: Readonly<Record<string, string>> = {
  app: 'app',
  shared: 'shared',
  contract: 'shared/contract',
  changes: 'shared/changes',
  attention: 'shared/attention',
};

const initial = document.documentElement.lang;
export const i18n = createI18n({
  legacy: false,
  locale: isLocale(initial) ? initial : 'en',
  fallbackLocale: 'en',
  missingWarn: false,
  fallbackWarn: false,
  messages: { en: {}, 'zh-CN': {} },
});

const loaded = new Set<string>();
const wanted = new Set<string>();

export function locale(): Locale {
  return i18n.global.locale.value as Locale;
}

/** The language's side of a text. */
export function tx(text: Text): string {
  return text[locale()];
}

function fileOf(folder: string, language: Locale): string {
  const inside = PLACES[folder] ?? `features/${folder}`;
  return `/src/${inside}/messages/${language}.json`;
}

async function load(folder: string, language: Locale): Promise<void> {
  const file = fileOf(folder, language);
  const load = FILES[file];
  if (loaded.has(file) || !load) return;
  const { default: messages } = await load();
  i18n.global.mergeLocaleMessage(language, { [folder]: messages });
  loaded.add(file);
}

async function loadWords(language: Locale): Promise<void> {
  if (loaded.has(language)) return;
  const { words } = await WORDS[language]();
  for (const { errors = {}, faults = {}, audit = {}, reason = {}, job = {}, attention = {} } of words)
    i18n.global.mergeLocaleMessage(language, {
      shared: { errors, faults },
      contract: { audit, reason, job },
      attention: { kind: attention },
    });
  loaded.add(language);
}

/** Makes the messages of these folders usable in the present language. */
export async function loadMessages(folders: readonly string[]): Promise<void> {
  for (const folder of folders) wanted.add(folder);
  await Promise.all([loadWords(locale()), ...folders.map((folder) => load(folder, locale()))]);
}

/** Changes the language of the whole console; what is on screen has its messages before it changes. */
export async function setLocale(language: Locale): Promise<void> {
  await Promise.all([loadWords(language), ...[...wanted].map((folder) => load(folder, language))]);
  i18n.global.locale.value = language;
  document.documentElement.lang = language;
  localStorage.setItem(STORED.locale, language);
}
