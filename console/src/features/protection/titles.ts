// Titles that the frame shows before the messages are there.
import type { Text } from '@/shared/i18n/locale.ts';

export const INCIDENTS: Text = { en: 'Incidents & Under Attack', 'zh-CN': '攻击态势与 Under Attack' };
export const NOW: Text = { en: 'Now', 'zh-CN': '当前' };
export const DEFAULTS: Text = { en: 'Defaults', 'zh-CN': '默认设置' };
