import test from 'ava';
import type { Member } from '../../../../models/rollouts/running-canary.ts';
import { type Decision, decisionOn } from '../../../../services/rollouts/evaluate.ts';
import { finding } from '../../../../services/rollouts/finding.ts';

const NODE: Member = {
  id: 'n',
  name: 'n',
  disabled: false,
  online: true,
  healthy: true,
  applied: true,
  failure: '',
};
const START = Date.parse('2026-01-01T00:00:00Z');
const harm = finding({ reason: 'error_ratio', siteId: 's', figure: 'origin_5xx', before: 0, now: 0.5 });

interface Row {
  title: string;
  /** Seconds since the window began; it is 300 long. */
  at?: number;
  members?: Partial<Member>[];
  found?: ReturnType<typeof finding>;
  byHand?: boolean;
  waiting?: boolean;
  expected: 'promote' | 'wait' | 'nothing' | [outcome: string, reason: string];
}

const ROWS: Row[] = [
  { title: 'while the window is open nothing is done', at: 299, expected: 'nothing' },
  { title: 'after the window it is promoted by itself', at: 300, expected: 'promote' },
  { title: 'after the window it waits where it is promoted by hand', at: 300, byHand: true, expected: 'wait' },
  { title: 'it waits once', at: 400, byHand: true, waiting: true, expected: 'nothing' },
  {
    title: 'a member that fails to apply',
    members: [{ failure: 'site a: no' }],
    expected: ['apply_failed', 'apply_failed'],
  },
  {
    title: 'a member whose data plane is not healthy',
    members: [{ healthy: false }],
    expected: ['unhealthy', 'unhealthy'],
  },
  { title: 'a member that is offline', members: [{}, { online: false }], expected: ['unhealthy', 'offline'] },
  {
    title: 'a member that was disabled counts no more',
    members: [{}, { disabled: true, online: false }],
    expected: 'nothing',
  },
  { title: 'no member is left', members: [{ disabled: true }], expected: ['unhealthy', 'offline'] },
  { title: 'members that were deleted', members: [], expected: ['unhealthy', 'offline'] },
  { title: 'visitors suffer', found: harm, expected: ['error_ratio', 'error_ratio'] },
  {
    title: 'visitors suffer while it waits',
    at: 900,
    byHand: true,
    waiting: true,
    found: harm,
    expected: ['error_ratio', 'error_ratio'],
  },
  {
    title: 'edges fail by themselves',
    found: finding({ reason: 'edge_errors' }),
    expected: ['error_ratio', 'edge_errors'],
  },
  { title: 'data planes die', found: finding({ reason: 'unhealthy' }), expected: ['unhealthy', 'unhealthy'] },
  {
    title: 'after the window a member that is late is waited for',
    at: 599,
    members: [{ applied: false }],
    expected: 'nothing',
  },
  {
    title: 'a member still not applied one window after the end',
    at: 600,
    members: [{ applied: false }],
    expected: ['apply_timeout', 'apply_timeout'],
  },
];

for (const { title, at = 10, members = [{}], found = null, byHand = false, waiting = false, expected } of ROWS) {
  test(`${title}: ${typeof expected === 'string' ? expected : expected.join(', ')}`, (t) => {
    const decision = decisionOn(
      {
        state: waiting ? 'awaiting_promotion' : 'canary',
        policy: {
          autoPromote: !byHand,
          windowSeconds: 300,
          errorRatioMultiplier: 2,
          errorRatioFloor: 0.05,
          minRequests: 100,
        },
        windowEndsAt: new Date(START + 300_000),
      },
      members.map((member) => ({ ...NODE, ...member })),
      { finding: found },
      new Date(START + at * 1000),
    );
    t.deepEqual(said(decision), expected);
  });
}

function said(decision: Decision): Row['expected'] {
  if (!decision) return 'nothing';
  if ('wait' in decision) return 'wait';
  return 'promote' in decision ? 'promote' : [decision.end, decision.finding.reason];
}
