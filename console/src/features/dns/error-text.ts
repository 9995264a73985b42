import { hasMessage } from '@/shared/i18n/format.ts';
import { i18n } from '@/shared/i18n/i18n.ts';

/** What a stored error code means, the code where it has no words. */
export function errorText(code: string): string {
  const key = `shared.errors.${code}`;
  return hasMessage(key) ? i18n.global.t(key) : code;
}
