// The order in which edges decide, row by row: what stands further up wins over everything below.
import test from 'ava';
import { type Facts, type Verdict, verdictOf } from '../../../../services/addresses/verdict.ts';

const ban = (scope: 'site' | 'platform') => ({
  id: scope,
  cidr: '203.0.113.7/32',
  scope,
  expiresAt: '2030-01-01T00:00:00Z',
});
const list = (name: string) => ({ id: name, name, entry: '203.0.113.0/24' });
const nothing: Facts = {
  platformBan: null,
  siteBan: null,
  allowedBy: null,
  blockedBy: null,
  trustedProxy: false,
  claimed: false,
  direct: true,
  nodes: 2,
  kernelNodes: 0,
  disabled: false,
  platformAttack: null,
  siteAttack: null,
  level: 'normal',
};
const platform = { platformBan: ban('platform') };
const banned = { ...platform, siteBan: ban('site') };
const blocked = { blockedBy: list('block') };
const allowed = { allowedBy: list('allow') };
const attacked = { platformAttack: 'js', siteAttack: 'pow', level: 'captcha' } as const;

const ROWS: [what: string, facts: Partial<Facts>, verdict: Partial<Verdict>][] = [
  ['nothing applies', {}, { outcome: 'passes', list: null, ban: null, level: 'normal' }],
  [
    'a global ban, every node bans in its kernel',
    { ...banned, kernelNodes: 2, disabled: true },
    { outcome: 'dropped', kernelNodes: 2 },
  ],
  [
    'a global ban, one of two nodes bans in its kernel',
    { ...platform, kernelNodes: 1 },
    { outcome: 'banned', kernelNodes: 1 },
  ],
  [
    'a global ban behind a proxy, whose address kernels see',
    { ...platform, kernelNodes: 2, direct: false },
    { outcome: 'banned', kernelNodes: 0 },
  ],
  ['a global ban where nobody is online', { ...platform, nodes: 0 }, { outcome: 'banned', kernelNodes: 0 }],
  [
    'a site ban is none of the kernel',
    { siteBan: ban('site'), kernelNodes: 2 },
    { outcome: 'banned', kernelNodes: 0, ban: ban('site') },
  ],
  [
    'a disabled site answers before bans are looked at',
    { ...banned, disabled: true },
    { outcome: 'disabled', ban: null },
  ],
  ['global bans first, then site bans', banned, { outcome: 'banned', ban: ban('platform') }],
  [
    'a ban before a block list and challenges',
    { ...banned, ...blocked, ...attacked },
    { outcome: 'banned', list: null },
  ],
  [
    'allow-listed addresses are never banned, blocked or challenged',
    { ...banned, ...blocked, ...attacked, ...allowed, kernelNodes: 2 },
    { outcome: 'passes', list: list('allow'), kernelNodes: 0 },
  ],
  ['a disabled site is off for them as well', { ...allowed, disabled: true }, { outcome: 'disabled' }],
  [
    'an address that is only claimed is spared nothing',
    { ...banned, ...allowed, claimed: true, direct: false },
    { outcome: 'banned' },
  ],
  [
    'a trusted proxy is never banned',
    { ...banned, trustedProxy: true, direct: false },
    { outcome: 'passes', trustedProxy: true },
  ],
  [
    'a trusted proxy is blocked as others are',
    { ...banned, ...blocked, trustedProxy: true, direct: false },
    { outcome: 'blocked' },
  ],
  [
    'a trusted proxy is challenged as others are',
    { ...banned, ...attacked, trustedProxy: true, direct: false },
    { outcome: 'challenged' },
  ],
  [
    'a block list before challenges',
    { ...blocked, ...attacked },
    { outcome: 'blocked', list: list('block'), level: 'normal' },
  ],
  [
    'the level is the highest that anybody asks for',
    attacked,
    { outcome: 'challenged', level: 'captcha', asks: 'load' },
  ],
  ['Under Attack of all sites', { platformAttack: 'js' }, { outcome: 'challenged', level: 'js', asks: 'platform' }],
  [
    'Under Attack of the site',
    { platformAttack: 'cookie302', siteAttack: 'pow' },
    { outcome: 'challenged', level: 'pow', asks: 'site' },
  ],
  [
    'of equal demands the first',
    { platformAttack: 'js', siteAttack: 'js', level: 'js' },
    { outcome: 'challenged', level: 'js', asks: 'platform' },
  ],
];

for (const [what, facts, verdict] of ROWS) {
  test(what, (t) => {
    t.like(verdictOf({ ...nothing, ...facts }), verdict);
  });
}
