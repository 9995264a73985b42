// A whole rule in words, as two versions of it are put beside each other.
import { i18n } from '@/shared/i18n/i18n.ts';
import { actionText } from './action-text.ts';
import type { DraftRule } from './rule.ts';

/** Name, state, phase, action and condition, a line each. */
export function ruleText({ name, enabled, phase, expression, action }: Omit<DraftRule, 'key'>): string {
  const { t } = i18n.global;
  const state = enabled ? t('rules.form.on') : t('rules.form.off');
  return [`${name} (${state})`, t(`rules.phase.${phase}`), actionText(action), expression].join('\n');
}
