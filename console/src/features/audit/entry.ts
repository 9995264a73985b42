// Words and addresses of audit entries.
import type { Output } from '@contract/procedure.ts';
import type { auditLogs } from '@contract/resources/audit-logs.ts';
import { hasMessage } from '@/shared/i18n/format.ts';
import { i18n } from '@/shared/i18n/i18n.ts';

export type Entry = Output<typeof auditLogs.list>['items'][number];

/** "Site changed" for site.update; the code itself where there are no words. */
export function actionText(action: string): string {
  const key = `contract.audit.${action}`;
  return hasMessage(key) ? i18n.global.t(`contract.audit.${action}`) : action;
}

export function targetText(type: string): string {
  const key = `audit.targets.${type}`;
  return hasMessage(key) ? i18n.global.t(`audit.targets.${type}`) : type;
}

const PAGES: Readonly<Record<string, string>> = {
  site: '/sites',
  node: '/nodes',
  cluster: '/clusters',
  ip_list: '/ip-lists',
};

/** Page of what was touched, if it has one. */
export function targetPage({ targetType, targetId, action }: Entry): string | null {
  const page = PAGES[targetType ?? ''];
  return page && targetId && !action.endsWith('.delete') ? `${page}/${targetId}` : null;
}
