import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { childSeconds, runMeasured } from '../../../../../bin/lib/test-run/measured.ts';
import { temporaryFolder } from '../../../../helpers/temporary-folder.ts';

test('the processor time of a program and of what it waited for is added up', (t) => {
  t.is(childSeconds('0m0.01s 0m0.02s\n1m2.50s 0m0.25s\n'), 62.75);
  t.is(childSeconds(''), 0);
});

test('a program’s output, its end and its time are told; its log has both streams', async (t) => {
  const log = join(temporaryFolder(t), 'program.log');
  let text = '';
  const busy = 'const end = process.cpuUsage().user + 200_000; while (process.cpuUsage().user < end);';
  const { code, seconds, cpuSeconds } = await runMeasured({
    command: process.execPath,
    args: ['-e', `${busy} console.log('told'); console.error('noted'); process.exitCode = 3;`],
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
