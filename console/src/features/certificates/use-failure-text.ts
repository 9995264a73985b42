import { useI18n } from 'vue-i18n';
import { hasMessage } from '@/shared/i18n/format.ts';

/** What an order or a credential failed with in words, the code where there are none. */
export function useFailureText(): (code: string) => string {
  const { t } = useI18n();
  return (code) =>
    hasMessage(`certificates.failure.${code}`)
      ? t(`certificates.failure.${code}`)
      : t('certificates.progress.code', { code });
}
