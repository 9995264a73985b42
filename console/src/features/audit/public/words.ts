// Actions and actors of the audit log in words.

import type { Output } from '@contract/procedure.ts';
import type { auditLogs } from '@contract/resources/audit-logs.ts';
import { hasMessage } from '@/shared/i18n/format.ts';
import { i18n } from '@/shared/i18n/i18n.ts';

type Entry = Output<typeof auditLogs.list>['items'][number];

/** "Site changed" for site.update; the code itself where there are no words. */
export function actionText(action: string): string {
  const key = `contract.audit.${action}`;
  return hasMessage(key) ? i18n.global.t(`contract.audit.${action}`) : action;
}

/** Who acted: the name, or what kind of actor it was where there is none. */
export function actorText({ actorName, actorType }: Pick<Entry, 'actorName' | 'actorType'>): string {
  return actorName ?? i18n.global.t(`audit.actor.${actorType}`);
}
