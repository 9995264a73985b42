// What the palette offers besides the pages, searches and actions of features: how the Web UI looks, and help.
import { setLocale } from '@/shared/i18n/i18n.ts';
import { LOCALE_NAMES, LOCALES } from '@/shared/i18n/locale.ts';
import { useSession } from '@/shared/session/session.ts';
import type { PaletteAction } from '../feature.ts';
import { density, type Theme, theme } from '../preferences.ts';
import { router } from '../router.ts';
import { keyboardHelp } from './keyboard-help.ts';
import { pageDocs } from './page-docs.ts';

const THEME_WORDS = { en: 'theme appearance mode', 'zh-CN': '主题 外观' };
const LANGUAGE_WORDS = { en: 'language', 'zh-CN': '语言' };
const looks = (value: Theme) => () => {
  theme.value = value;
};

export const commands: readonly PaletteAction[] = [
  {
    title: { en: 'Docs for this page', 'zh-CN': '本页的文档' },
    words: { en: 'manual documentation', 'zh-CN': '手册 帮助' },
    run: () => void router.push(pageDocs()),
  },
  {
    title: { en: 'Keyboard shortcuts', 'zh-CN': '键盘快捷键' },
    words: { en: 'help keys', 'zh-CN': '帮助' },
    run: () => {
      keyboardHelp.value = true;
    },
  },
  { title: { en: 'Dark theme', 'zh-CN': '深色主题' }, words: THEME_WORDS, run: looks('dark') },
  { title: { en: 'Light theme', 'zh-CN': '浅色主题' }, words: THEME_WORDS, run: looks('light') },
  { title: { en: 'Theme of the system', 'zh-CN': '跟随系统主题' }, words: THEME_WORDS, run: looks('system') },
  {
    title: { en: 'Compact tables on or off', 'zh-CN': '切换紧凑表格' },
    words: { en: 'density comfortable', 'zh-CN': '密度' },
    run: () => {
      density.value = density.value === 'compact' ? 'comfortable' : 'compact';
    },
  },
  ...LOCALES.map((language) => ({
    title: { en: LOCALE_NAMES[language], 'zh-CN': LOCALE_NAMES[language] },
    words: LANGUAGE_WORDS,
    run: () => setLocale(language),
  })),
  {
    title: { en: 'Sign out', 'zh-CN': '退出登录' },
    words: { en: 'log out', 'zh-CN': '注销' },
    run: () => useSession().signOut(),
  },
];
