// A change in one line: "Revision 214: 11 of 12 nodes, waiting for node-17".
import { i18n } from '@/shared/i18n/i18n.ts';
import type { Tone } from '@/shared/state/tone.ts';
import type { Change } from './changes.ts';

export function changeText(change: Change): string {
  const { t } = i18n.global;
  const { applied, total } = change.nodes;
  const what =
    change.kind === 'config'
      ? t('app.changes.revision', { revision: change.id.slice(change.id.lastIndexOf('=') + 1) })
      : reasonText(change.reason);
  if (total === 0) return t('app.changes.noNodes', { what });
  const [first, ...others] = change.waiting;
  if (!first) return t('app.changes.all', { what, applied, total });
  if (others.length === 0) return t('app.changes.one', { what, applied, total, node: first.name });
  const whole = total - applied;
  return t('app.changes.several', { what, applied, total, node: first.name, count: whole - 1, whole });
}

/** What happened to a ban. */
export function reasonText(reason: string): string {
  const { t } = i18n.global;
  return reason === 'ban_lifted' ? t('app.changes.lifted') : t('app.changes.banned');
}

export function changeTone(change: Change): Tone {
  if (change.nodes.failed > 0) return 'red';
  if (!change.done) return 'blue';
  return change.nodes.offline > 0 ? 'amber' : 'green';
}
