// Edits that meet what somebody else saved meanwhile.
import test from 'ava';
import { CallError } from '../../../../../../console/src/shared/api/call-error.ts';
import type { Conflict } from '../../../../../../console/src/shared/forms/changes.ts';
import { sendOnTop } from '../../../../../../console/src/shared/forms/send-on-top.ts';

const CONFLICT: Conflict = { path: 'name', mine: 'm', theirs: 't' };
const mismatch = () => new CallError('UPDATED_AT_MISMATCH', '', 409);

for (const { title, refusals, rebased, sends, outcome } of [
  { title: 'what nobody else changed is sent once', refusals: 0, rebased: [], sends: 1, outcome: 'saved' },
  { title: 'other fields of others: it is sent again', refusals: 2, rebased: [], sends: 3, outcome: 'saved' },
  { title: 'the same fields: a person chooses first', refusals: 1, rebased: [CONFLICT], sends: 1, outcome: 'ABORTED' },
  {
    title: 'what is gone answers with the refusal',
    refusals: 1,
    rebased: null,
    sends: 1,
    outcome: 'UPDATED_AT_MISMATCH',
  },
  {
    title: 'somebody who is always quicker is given way',
    refusals: 99,
    rebased: [],
    sends: 5,
    outcome: 'UPDATED_AT_MISMATCH',
  },
] as const) {
  test(title, async (t) => {
    let sent = 0;
    const send = async () => {
      if (sent++ < refusals) throw mismatch();
      return 'saved';
    };
    t.is(await sendOnTop(send, async () => rebased).catch((error: CallError) => error.code), outcome);
    t.is(sent, sends);
  });
}

test('any other refusal is the answer', async (t) => {
  const refuse = () => Promise.reject(new CallError('REGION_CODE_TAKEN', '', 409));
  const error = await t.throwsAsync(sendOnTop(refuse, async () => []));
  t.is((error as CallError).code, 'REGION_CODE_TAKEN');
});
