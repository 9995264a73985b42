// What of a site does not run where it should, in words.
import type { Output } from '@contract/procedure.ts';
import type { nodes } from '@contract/resources/nodes.ts';
import type { sites } from '@contract/resources/sites.ts';
import { i18n } from '@/shared/i18n/i18n.ts';

type Site = Output<typeof sites.get>;
type Node = Output<typeof nodes.get>;

/** What an entry of the kind is to a reader; the kind itself where nothing is known of it. */
export function kindText(kind: string): string {
  const { t, te } = i18n.global;
  return te(`sites.delivery.kinds.${kind}`) ? t(`sites.delivery.kinds.${kind}`) : kind;
}

/** What the node holds back of the site because it lacks a capability; null: nothing. */
export function lackingText({ delivery }: Site, { supportedFeatures }: Node): string | null {
  const parts = delivery.blocked
    .filter(({ reason }) => reason === 'lacking')
    .map(({ kind, capabilities }) => ({ kind, lacks: capabilities.filter((one) => !supportedFeatures.includes(one)) }))
    .filter(({ lacks }) => lacks.length > 0)
    .map(({ kind, lacks }) =>
      i18n.global.t('sites.blocked.lacks', { kind: kindText(kind), capabilities: lacks.join(', ') }),
    );
  // Nodes that lack different things have a line each in the delivery.
  return parts.length > 0 ? [...new Set(parts)].join(' ') : null;
}
