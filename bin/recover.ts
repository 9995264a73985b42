// `npm run recover`: what an administrator does by hand after an accident.
import { parseArgs } from 'node:util';
import { declareRestored } from '../pipeline/history.ts';
import { systemCall } from '../runtime/call.ts';
import { withOneConnection } from '../runtime/one-connection.ts';
import { Passwords } from '../runtime/passwords.ts';
import { writeAlone } from '../runtime/write.ts';
import { recoverOperator } from '../services/auth/recover.ts';
import { Refusal, report, say } from './lib/progress.ts';
import { pipedSecret, typeSecrets } from './lib/secret-input.ts';

const HELP = `Usage: DATABASE_URL=postgres://… npm run recover -- [--reset-password] [--disable-two-factor]
       DATABASE_URL=postgres://… npm run recover -- restored

  --reset-password       gives the operator a new password: typed twice without echo, or the first line of standard
                         input. It is never taken from an argument or the environment.
  --disable-two-factor   turns two-factor sign-in off and deletes its secret and backup codes.
                         Each of the two options also ends every session, trusted device and half-way sign-in, in one
                         transaction with its audit entry. Passkeys and access keys stay.

  restored               after the database was restored from a backup: begins a new epoch, so that every node compares
                         its state with the console's and deletes entries that the restored database lacks.
                         Running it unnecessarily is safe. The console detects a restore onto another server by itself,
                         and one after which nodes can prove that data is missing.

Exit status: 0 done, 1 nothing changed, 2 wrong usage. DATABASE_DIRECT_URL wins over DATABASE_URL.`;

const SHORTEST = 12;
const LONGEST = 128;

/** The command line means nothing; exit status 2. */
class WrongUsage extends Refusal {}

function command() {
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: {
        'reset-password': { type: 'boolean', default: false },
        'disable-two-factor': { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
      },
    });
    return {
      help: values.help || positionals.join() === 'help',
      restored: positionals.join() === 'restored',
      words: positionals.length,
      resetPassword: values['reset-password'],
      disableTwoFactor: values['disable-two-factor'],
    };
  } catch {
    // Not its message: it repeats what was typed, which may be a password.
    throw new WrongUsage(HELP);
  }
}

async function newPassword(): Promise<string> {
  const typed = process.stdin.isTTY ? await typeSecrets(['New password: ', 'Once more: ']) : [await pipedSecret()];
  if (typed.some((password) => password !== typed[0])) throw new Refusal('the passwords differ, nothing was changed');
  const length = [...typed[0]!].length;
  if (length < SHORTEST || length > LONGEST) {
    throw new Refusal(`a password must have ${SHORTEST} to ${LONGEST} characters; nothing was changed`);
  }
  return typed[0]!;
}

async function recover(url: string, resetPassword: boolean, disableTwoFactor: boolean): Promise<void> {
  const passwordHash = resetPassword ? await new Passwords().hash(await newPassword()) : null;
  const done = await withOneConnection(url, (sql) =>
    writeAlone(sql, systemCall('recover'), (tx) => recoverOperator(tx, { passwordHash, disableTwoFactor })),
  );
  if (!done) throw new Refusal('the console has no operator yet; nothing was changed');
  say(`account ${done.email}, sessions ended: ${done.sessionsRevoked}`);
  if (resetPassword) say('the new password is in effect');
  if (disableTwoFactor) say('two-factor sign-in is off');
  if (done.passkeysKept > 0)
    say(`passkeys that can still sign in: ${done.passkeysKept}; delete those you do not recognize`);
}

try {
  const { help, restored, words, resetPassword, disableTwoFactor } = command();
  const account = resetPassword || disableTwoFactor;
  if (help) {
    say(HELP);
  } else {
    if (restored ? words !== 1 || account : words > 0 || !account) throw new WrongUsage(HELP);
    const url = process.env.DATABASE_DIRECT_URL || process.env.DATABASE_URL;
    if (!url) throw new Refusal(`DATABASE_URL is missing.\n\n${HELP}`);
    if (restored) say(`epoch ${await declareRestored(url)} started; nodes converge within one heartbeat`);
    else await recover(url, resetPassword, disableTwoFactor);
  }
} catch (error) {
  report(error);
  if (error instanceof WrongUsage) process.exitCode = 2;
} finally {
  // What is left unread would keep the program waiting.
  process.stdin.destroy();
}
