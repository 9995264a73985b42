// How a revision reads.
import type { Output } from '@contract/procedure.ts';
import type { revisions } from '@contract/resources/revisions.ts';
import { fieldsText } from '@/shared/contract/field-text.ts';
import { hasMessage } from '@/shared/i18n/format.ts';
import { i18n } from '@/shared/i18n/i18n.ts';

export type Revision = Output<typeof revisions.revisions>['items'][number];

type Reasoned = Pick<Revision, 'reasonCode' | 'reasonParams'>;

/** Why it was made, and what of the subject was changed. */
export function reasonOf({ reasonCode, reasonParams: { changed, revision } }: Reasoned): string {
  const { t } = i18n.global;
  const what = hasMessage(`contract.reason.${reasonCode}`) ? t(`contract.reason.${reasonCode}`) : reasonCode;
  const details = Array.isArray(changed) ? fieldsText(changed) : typeof revision === 'string' ? revision : '';
  return details === '' ? what : t('revisions.list.changed', { what, changed: details });
}

/** What somebody wrote beside a rollback. */
export function noteOf({ reasonParams: { note } }: Reasoned): string {
  return typeof note === 'string' ? note : '';
}
