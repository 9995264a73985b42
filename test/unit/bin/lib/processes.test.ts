import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { groupMembers, markOf } from '../../../../bin/lib/process-table.ts';
import { Processes } from '../../../../bin/lib/processes.ts';
import { eventually } from '../../../helpers/eventually.ts';
import { temporaryFolder } from '../../../helpers/temporary-folder.ts';

const shell = (script: string) => ({ command: '/bin/sh', args: ['-c', script] });

function folder(t: ExecutionContext) {
  const path = temporaryFolder(t);
  return { list: join(path, 'processes.json'), logFile: join(path, 'child.log') };
}

test('a child is stopped together with what it started', async (t) => {
  const { list, logFile } = folder(t);
  const child = new Processes(list).start({ name: 'child', ...shell('sleep 60 & sleep 60'), logFile });
  const mark = markOf(child.pid)!;
  await eventually(() => groupMembers(mark).length === 3);
  await child.stop();
  t.deepEqual(groupMembers(mark), []);
  t.false(existsSync(list));
});

test('a child that ignores the polite signal is killed', async (t) => {
  const { list, logFile } = folder(t);
  const child = new Processes(list).start({
    name: 'stubborn',
    ...shell('trap "" TERM; echo ready; while :; do sleep 0.1; done'),
    logFile,
    graceMs: 100,
  });
  await eventually(() => readFileSync(logFile, 'utf8').includes('ready'));
  await child.stop();
  t.false(child.running());
  t.is((await child.ended).signal, 'SIGKILL');
});

test('a child that is kept running is started again', async (t) => {
  const { list, logFile } = folder(t);
  const child = new Processes(list).start({ name: 'kept', ...shell('sleep 60'), logFile });
  child.keepRunning();
  const first = child.pid;
  process.kill(first, 'SIGKILL');
  await eventually(() => child.pid !== first);
  t.true(child.running());
  await child.stop();
  t.deepEqual(await child.ended, { code: null, signal: 'SIGTERM' });
});

test('what a killed launcher left is found and stopped by the next one', async (t) => {
  const { list, logFile } = folder(t);
  const module = join(import.meta.dirname, '../../../../bin/lib/processes.ts');
  const script = `
    const { Processes } = await import(${JSON.stringify(module)});
    const child = new Processes(${JSON.stringify(list)}).start({
      name: 'orphan', command: '/bin/sh', args: ['-c', 'sleep 60 & exec sleep 60'], logFile: ${JSON.stringify(logFile)} });
    console.log(child.pid);
    setInterval(() => {}, 1000);`;
  const launcher = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [output] = (await once(launcher.stdout, 'data')) as [Buffer];
  const mark = markOf(Number(output.toString()))!;
  await eventually(() => groupMembers(mark).length === 2);
  launcher.kill('SIGKILL');
  await once(launcher, 'exit');
  t.is(groupMembers(mark).length, 2);
  t.deepEqual(await new Processes(list).stopLeftovers(), ['orphan']);
  t.deepEqual(groupMembers(mark), []);
});

test('nothing is started while everything is being stopped', async (t) => {
  const { list, logFile } = folder(t);
  const processes = new Processes(list);
  await processes.stopAll();
  t.throws(() => processes.start({ name: 'late', ...shell('sleep 60'), logFile }));
});

test('a program that does not exist ends with 127', async (t) => {
  const { list, logFile } = folder(t);
  const child = new Processes(list).start({ name: 'missing', command: '/no/such/program', args: [], logFile });
  t.deepEqual(await child.ended, { code: 127, signal: null });
  t.false(child.running());
});
