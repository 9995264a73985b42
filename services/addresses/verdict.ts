// What a request from an address meets at a site, by the order of the edge's stages (agents/caddy/edge/order.go): the
// kernel, a disabled site, bans, block lists, challenges. Pure, so that the order can be told as a table.
import type { AddressDossier } from '../../contract/resources/addresses.ts';
import { LEVELS, type Level } from '../../contract/scalars/challenge.ts';

export type Verdict = Omit<AddressDossier['clusters'][number], 'clusterId' | 'clusterName'>;
type Ban = NonNullable<Verdict['ban']>;
type List = NonNullable<Verdict['list']>;

/** What edges of a cluster know of the address and of one site. */
export interface Facts {
  /** Distributed bans that cover the address. */
  platformBan: Ban | null;
  siteBan: Ban | null;
  allowedBy: List | null;
  blockedBy: List | null;
  /** The cluster believes the header of these peers, and never bans them. */
  trustedProxy: boolean;
  /** Peers claim addresses that nobody vouches for: allow lists spare such clients nothing. */
  claimed: boolean;
  /** Kernels see the visitor itself, and no proxy before the node. */
  direct: boolean;
  nodes: number;
  kernelNodes: number;
  disabled: boolean;
  /** Challenges that Under Attack asks for, of all sites and of the site; null while it is off. */
  platformAttack: Level | null;
  siteAttack: Level | null;
  /** Highest level of the site at its online nodes. */
  level: Level;
}

/** The first stage that answers. */
export function verdictOf(facts: Facts): Verdict {
  const allowed = facts.claimed ? null : facts.allowedBy;
  const platformBan = allowed || facts.trustedProxy ? null : facts.platformBan;
  const siteBan = allowed || facts.trustedProxy ? null : facts.siteBan;
  const kernelNodes = platformBan && facts.direct ? facts.kernelNodes : 0;
  const none: Verdict = {
    outcome: 'passes',
    ban: null,
    list: null,
    level: 'normal',
    asks: null,
    kernelNodes,
    nodes: facts.nodes,
    trustedProxy: facts.trustedProxy,
  };
  if (kernelNodes > 0 && kernelNodes === facts.nodes) return { ...none, outcome: 'dropped', ban: platformBan };
  if (facts.disabled) return { ...none, outcome: 'disabled' };
  const ban = platformBan ?? siteBan;
  if (ban) return { ...none, outcome: 'banned', ban };
  if (allowed) return { ...none, list: allowed };
  if (facts.blockedBy) return { ...none, outcome: 'blocked', list: facts.blockedBy };
  const demand = highest([
    ['platform', facts.platformAttack ?? 'normal'],
    ['site', facts.siteAttack ?? 'normal'],
    ['load', facts.level],
  ]);
  return demand ? { ...none, outcome: 'challenged', ...demand } : none;
}

/** The highest demand, the first of equal ones; null when nobody asks for anything. */
function highest(
  demands: readonly (readonly [NonNullable<Verdict['asks']>, Level])[],
): { asks: NonNullable<Verdict['asks']>; level: Level } | null {
  let best: { asks: NonNullable<Verdict['asks']>; level: Level } | null = null;
  for (const [asks, level] of demands) {
    if (LEVELS.indexOf(level) > LEVELS.indexOf(best?.level ?? 'normal')) best = { asks, level };
  }
  return best;
}
