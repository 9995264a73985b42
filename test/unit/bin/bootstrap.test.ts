import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { root } from '../../../bin/lib/root.ts';
import { temporaryFolder } from '../../helpers/temporary-folder.ts';

const bootstrap = join(root, 'bin', 'bootstrap.mjs');

function script(t: ExecutionContext, text: string): string {
  const file = join(temporaryFolder(t), 'script.ts');
  writeFileSync(file, text);
  return file;
}

function run(args: string[], env: NodeJS.ProcessEnv = {}) {
  return spawnSync(process.execPath, [bootstrap, ...args], {
    encoding: 'utf8',
    timeout: 60_000,
    env: { ...process.env, ...env },
  });
}

test('a script runs on Node 24 with its arguments, and nothing else is on stdout', (t) => {
  const { stdout, status } = run([
    script(t, 'const [a]: string[] = process.argv.slice(2); console.log(process.version, a);'),
    'x y',
  ]);
  t.regex(stdout, /^v24\.\d+\.\d+ x y\n$/);
  t.is(status, 0);
});

test('the exit code of the script is handed on', (t) => {
  t.is(run([script(t, 'process.exit(7);')]).status, 7);
  t.is(run([script(t, 'process.kill(process.pid, "SIGTERM"); setInterval(() => {}, 1000);')]).status, 143);
});

test('commands of packages do not hide those of the machine', (t) => {
  const packages = join(root, 'node_modules', '.bin');
  const { stdout } = run([script(t, 'console.log(process.env.PATH);')], { PATH: `${packages}:${process.env.PATH}` });
  t.false(stdout.trim().split(':').includes(packages));
});

test('a file that does not exist is told', (t) => {
  const { stderr, status } = run(['bin/no-such.ts']);
  t.is(status, 2);
  t.regex(stderr, /no such file: bin\/no-such\.ts/);
});
