// Languages of the console. Text a feature needs before its messages are loaded is a `Text`: both languages at once.
export const LOCALES = ['en', 'zh-CN'] as const;
export type Locale = (typeof LOCALES)[number];
export type Text = Readonly<Record<Locale, string>>;

export const LOCALE_NAMES: Readonly<Record<Locale, string>> = { en: 'English', 'zh-CN': '简体中文' };

/** Keys of what the browser keeps; boot.js reads them before anything else. */
export const STORED = {
  theme: 'svc.theme',
  locale: 'svc.language',
  density: 'svc.density',
  /** Columns left out of a table; its name follows. */
  columns: 'svc.columns.',
} as const;

export function isLocale(value: unknown): value is Locale {
  return LOCALES.includes(value as Locale);
}
