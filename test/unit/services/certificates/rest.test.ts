import test from 'ava';
import type { OrderStep } from '../../../../models/certificates/acme-order.ts';
import { problemOf, retryAt } from '../../../../services/certificates/acme/protocol/problem.ts';
import { type Asking, bucketsOf, restAfter } from '../../../../services/certificates/acme/rest.ts';

const NOW = new Date('2026-03-01T00:00:00Z');
const after = (seconds: number) => new Date(NOW.getTime() + seconds * 1000);
const URL = 'https://acme.example/directory';
const DIRECTORY = `directory ${URL}`;
const DOMAINS = [`domain ${URL} example.org`, `domain ${URL} example.net`];

const asking = (state: OrderStep): Asking => ({
  state,
  accountId: 'a1',
  names: ['www.example.org', '*.example.org', 'example.net'],
  directoryUrl: URL,
});

const problem = (type: string, status: number, seconds: number | null, names: string[] = []) => {
  const told = `urn:ietf:params:acme:error:${type}`;
  const subproblems = names.map((value) => ({ type: told, identifier: { type: 'dns', value } }));
  return problemOf({ type: told, subproblems }, status, retryAt(seconds === null ? undefined : String(seconds), NOW));
};

const STEPS = ['account', 'order', 'challenges', 'present', 'propagate', 'validate', 'finalize', 'download'] as const;

for (const seconds of [2, 7200]) {
  for (const step of STEPS) {
    test(`a limit of ${seconds} s at ${step} holds whom it is about`, (t) => {
      const rest = restAfter(problem('rateLimited', 429, seconds), asking(step), NOW)!;
      t.deepEqual(rest.until, after(seconds));
      const expected = {
        account: [{ keys: ['account a1'], until: after(seconds) }],
        order: [
          { keys: DOMAINS, until: after(seconds) },
          { keys: ['account a1'], until: after(Math.min(seconds, 60)) },
        ],
      };
      t.deepEqual(rest.blocked, step === 'account' || step === 'order' ? expected[step] : []);
    });

    test(`a 503 of ${seconds} s at ${step} holds everybody`, (t) => {
      for (const type of ['rateLimited', 'serverInternal', '']) {
        const blocked = [{ keys: [DIRECTORY], until: after(seconds) }];
        t.deepEqual(restAfter(problem(type, 503, seconds), asking(step), NOW), { until: after(seconds), blocked });
      }
    });

    test(`a fault of ${seconds} s at ${step} holds the order alone`, (t) => {
      for (const status of [408, 429, 500]) {
        const rest = restAfter(problem('', status, seconds), asking(step), NOW);
        t.deepEqual(rest, { until: after(seconds), blocked: [] });
      }
    });
  }
}

test('without nonces or a directory nobody is answered', (t) => {
  const refused = Object.assign(problem('', 429, 7200), { ofEverybody: true });
  const blocked = [{ keys: [DIRECTORY], until: after(7200) }];
  t.deepEqual(restAfter(refused, asking('finalize'), NOW), { until: after(7200), blocked });
});

test('a limit without a time lasts a minute, and of the names that it tells', (t) => {
  const { until, blocked } = restAfter(problem('rateLimited', 429, null, ['example.net']), asking('order'), NOW)!;
  t.deepEqual(until, after(60));
  t.deepEqual(blocked[0], { keys: [DOMAINS[1]!], until: after(60) });
});

test('other refusals say nothing of time', (t) => {
  t.is(restAfter(problem('malformed', 400, 7200), asking('order'), NOW), null);
  t.is(restAfter(problem('serverInternal', 500, null), asking('order'), NOW), null);
});

test('an order needs open what it asks', (t) => {
  t.deepEqual(bucketsOf(asking('check')), []);
  t.deepEqual(bucketsOf({ ...asking('order'), directoryUrl: null }), []);
  t.deepEqual(bucketsOf(asking('account')), [DIRECTORY, 'account a1']);
  t.deepEqual(bucketsOf(asking('order')), [DIRECTORY, 'account a1', ...DOMAINS]);
  for (const step of STEPS.slice(2)) t.deepEqual(bucketsOf(asking(step)), [DIRECTORY]);
});
