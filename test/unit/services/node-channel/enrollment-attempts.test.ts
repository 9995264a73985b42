// Failed enrollments are limited by address.
import { Code, ConnectError } from '@connectrpc/connect';
import test from 'ava';
import { EnrollmentAttempts } from '../../../../services/node-channel/enrollment-attempts.ts';

test('an address with 30 failed enrollments is rejected before it costs a transaction; others are not', async (t) => {
  const attempts = new EnrollmentAttempts();
  let transactions = 0;
  const wrong = async () => {
    transactions += 1;
    throw new ConnectError('the enrollment token is not valid', Code.PermissionDenied);
  };
  for (let count = 0; count < 1_000; count++) t.is(await attempts.run('192.0.2.1', async () => 7), 7);
  for (let count = 0; count < 30; count++)
    await t.throwsAsync(attempts.run('192.0.2.1', wrong), { message: /not valid/ });
  await t.throwsAsync(attempts.run('192.0.2.1', wrong), { message: /too many failed enrollments/ });
  t.is(transactions, 30);
  t.is(await attempts.run('192.0.2.2', async () => 7), 7);
});
