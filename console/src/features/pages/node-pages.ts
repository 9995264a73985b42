// The pages that nodes have themselves. They come in a chunk of their own, with the first who asks.
import type { PageStatus } from '@contract/resources/error-pages.ts';

export const nodePages = async () => (await import('@contract/node-pages.json')).default;
export type NodePages = Awaited<ReturnType<typeof nodePages>>;
export type NodePageName = keyof NodePages;

const NAMES: Partial<Record<PageStatus, NodePageName>> = {
  400: 'bad-request',
  403: 'policy-denied',
  404: 'not-found',
  405: 'method-not-allowed',
  429: 'too-many-requests',
  500: 'internal-error',
  502: 'origin-unreachable',
  503: 'origin-busy',
  504: 'origin-timeout',
};

/** The page that visitors meet most of a status; undefined: nodes have none, only origins respond with it. */
export const nodePageOf = (status: PageStatus): NodePageName | undefined => NAMES[status];
