import test from 'ava';
import { setCallHooks, withSession } from '../../../../../../console/src/shared/api/call.ts';
import { CallError } from '../../../../../../console/src/shared/api/call-error.ts';

const refused = () => new CallError('UNAUTHORIZED', 'no session');

/** Calls that are answered when told to, and dialogs that are settled when told to. */
function ask() {
  const answers: PromiseWithResolvers<string>[] = [];
  const promise = withSession(() => {
    const answer = Promise.withResolvers<string>();
    answers.push(answer);
    return answer.promise;
  });
  return { answers, promise };
}

test.serial('a refusal that arrives after the person signed in again opens no second dialog', async (t) => {
  const dialogs: PromiseWithResolvers<void>[] = [];
  setCallHooks({
    sessionEnded: () => {
      const dialog = Promise.withResolvers<void>();
      dialogs.push(dialog);
      return dialog.promise;
    },
    changesPublished: () => t.fail('nothing is published'),
  });
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  const [first, late] = [ask(), ask()];
  first.answers[0]!.reject(refused());
  await turn();
  t.is(dialogs.length, 1);
  dialogs[0]!.resolve();
  await turn();
  late.answers[0]!.reject(refused());
  await turn();
  t.is(dialogs.length, 1);
  first.answers[1]!.resolve('first');
  late.answers[1]!.resolve('late');
  t.deepEqual(await Promise.all([first.promise, late.promise]), ['first', 'late']);
  // A session that has ended again is renewed again.
  const again = ask();
  again.answers[0]!.reject(refused());
  await turn();
  t.is(dialogs.length, 2);
  dialogs[1]!.resolve();
  await turn();
  again.answers[1]!.reject(refused());
  await t.throwsAsync(again.promise, { message: 'no session' });
});
