// Words and addresses of audit entries.
import type { Output } from '@contract/procedure.ts';
import type { auditLogs } from '@contract/resources/audit-logs.ts';
import { fieldsText } from '@/shared/contract/field-text.ts';
import { hasMessage } from '@/shared/i18n/format.ts';
import { i18n } from '@/shared/i18n/i18n.ts';
import { placeOf } from '@/shared/page/places.ts';

export type Entry = Output<typeof auditLogs.list>['items'][number];

export function targetText(type: string): string {
  const key = `audit.targets.${type}`;
  return hasMessage(key) ? i18n.global.t(`audit.targets.${type}`) : type;
}

/** What of it was changed; empty where the entry does not say. */
export function changedText({ metadata }: Entry): string {
  return fieldsText(metadata.changed);
}

/** The revision that a save led to; null: none. Of several, the first. */
export function publishedOf({ metadata }: Entry): { clusterId: string; revision: string } | null {
  const [first] = Array.isArray(metadata.published) ? metadata.published : [];
  const { clusterId, revision } = first ?? {};
  return typeof clusterId === 'string' && typeof revision === 'string' ? { clusterId, revision } : null;
}

/** Actions whose revision made or ended something, or restored an earlier one: the cluster's history has the way back. */
const NOT_UNDONE: readonly string[] = ['site.create', 'site.delete', 'cluster.rollback', 'cluster.change_undone'];

export function canUndo(entry: Entry): boolean {
  return publishedOf(entry) !== null && !NOT_UNDONE.includes(entry.action);
}

/** Page of what was touched, if it has one and is still there. */
export function targetPage({ targetType, targetId, targetExists }: Entry): string | null {
  return targetType && targetId && targetExists ? placeOf(targetType, targetId) : null;
}
