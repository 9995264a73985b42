import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { childSeconds, runMeasured } from '../../../../../bin/lib/test-run/measured.ts';
import { temporaryFolder } from '../../../../helpers/temporary-folder.ts';

test('the processor time of a program and of what it waited for is added up', (t) => {
  t.is(childSeconds('0m0.01s 0m0.02s\n1m2.50s 0m0.25s\n'), 62.75);
  t.is(childSeconds(''), 0);
});

const BUSY = 'const end = process.cpuUsage().user + 200_000; while (process.cpuUsage().user < end);';

/** Runs a script of the shell and resolves with what it took. */
async function timesOf(t: ExecutionContext, script: string, onText: (text: string) => void) {
  const log = join(temporaryFolder(t), 'program.log');
  return runMeasured({ command: 'sh', args: ['-c', script], cwd: '/', env: process.env, log, onText });
}

test('who outlives their parent counts, too', async (t) => {
  // Another system cannot tell: its figures miss them.
  if (process.platform !== 'linux') return t.pass();
  let text = '';
  // Nobody waits for the one in the background but for the end of what it says.
  const script = `(${process.execPath} -e '${BUSY} console.log(1)' & ) | cat`;
  const { code, cpuSeconds } = await timesOf(t, script, (chunk) => {
    text += chunk;
  });
  t.is(code, 0);
  t.is(text, '1\n');
  t.true(cpuSeconds >= 0.2);
});

test('a program ended by a signal has the code that a shell would say', async (t) => {
  const { code } = await timesOf(t, 'kill -KILL $$', () => undefined);
  t.is(code, 128 + 9);
});

test('a program’s output, its end and its time are told; its log has both streams', async (t) => {
  const log = join(temporaryFolder(t), 'program.log');
  let text = '';
  const { code, seconds, cpuSeconds } = await runMeasured({
    command: process.execPath,
    args: ['-e', `${BUSY} console.log('told'); console.error('noted'); process.exitCode = 3;`],
    cwd: '/',
    env: process.env,
    log,
    onText: (chunk) => {
      text += chunk;
    },
  });
  t.is(code, 3);
  t.is(text, 'told\n');
  t.true(cpuSeconds >= 0.2 && seconds > 0);
  t.deepEqual(readFileSync(log, 'utf8').trim().split('\n').sort(), ['noted', 'told']);
});
