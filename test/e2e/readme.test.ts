// The README's lines, run as they stand there.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { type Demo, demoFolder, processesOf, removeDemo, root, startDemo } from '../helpers/demo.ts';
import { eventually } from '../helpers/eventually.ts';

const readme = readFileSync(join(root, 'README.md'), 'utf8');

/** The shell lines marked with that name. */
function block(name: string): string {
  const lines = new RegExp(`<!-- run: ${name} -->\n\`\`\`sh\n([\\s\\S]*?)\n\`\`\``).exec(readme)?.[1];
  if (!lines) throw new Error(`the README has no block ${name}`);
  return lines;
}

function runShell(script: string, env: NodeJS.ProcessEnv): { output: string; lines: string[] } {
  const shell = spawnSync('sh', ['-eu', '-c', script], {
    cwd: root,
    env: { ...process.env, ...env },
    encoding: 'utf8',
    timeout: 240_000,
  });
  const output = `${shell.stdout}\n--- errors\n${shell.stderr}`;
  if (shell.status !== 0) throw new Error(`the lines failed with ${shell.status ?? shell.signal}\n${output}`);
  return { output, lines: shell.stdout.trim().split('\n') };
}

test.serial('the lines for the demo show a ban and its end', async (t) => {
  const folder = demoFolder('readme');
  await removeDemo(folder);
  const demo: Demo = await startDemo(folder);
  t.teardown(async () => {
    await demo.end('SIGINT');
    await eventually(() => processesOf(folder).length === 0);
    await removeDemo(folder);
  });
  const lines = block('demo').replace('npm run -s demo:env', `npm run -s demo:env -- --data ${folder}`);
  t.not(lines, block('demo'));
  const answers = runShell(lines, {}).lines.filter((line) => /^\d{3}$/.test(line));
  t.deepEqual(answers, ['200', '403', '200', '200']);
});

test.serial('the first protected site by hand, from npm start to a 403', async (t) => {
  const folder = demoFolder('by-hand');
  await removeDemo(folder);
  const state = join(root, 'data', 'edge-readme-test');
  rmSync(state, { recursive: true, force: true });
  const env = { ...process.env, DATABASE_URL: '', REDIS_URL: '', NODE_ENV: '' };
  const start: ChildProcess = spawn('npm', ['start', '-s', '--', '--data', folder], {
    cwd: root,
    env,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [start.stdout, start.stderr]) {
    stream?.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  t.teardown(async () => {
    process.kill(-start.pid!, 'SIGINT');
    await eventually(() => !existsSync(join(folder, 'launcher.lock')), { timeoutMs: 60_000 });
    await removeDemo(folder);
    rmSync(state, { recursive: true, force: true });
  });
  const address = await eventually(() => /The console runs at (\S+)/.exec(output)?.[1], { timeoutMs: 300_000 }).catch(
    (error: unknown) => {
      throw new Error(`${String(error)}\n${output}`);
    },
  );
  const token = /"setupToken":"([^"]+)"/.exec(output)?.[1];
  t.truthy(token, 'the setup token is logged');
  t.regex(output, /setup with the setup token/);
  // Its own state folder, so that a node of the developer's is left alone.
  const lines = block('by-hand').replaceAll('data/edge', 'data/edge-readme-test');
  const shown = runShell(lines, { CONSOLE: address, TOKEN: token, PASSWORD: 'correct horse battery staple' });
  t.regex(shown.output, /<h1>It works<\/h1>/);
  t.is(shown.lines.at(-1), '403', shown.output);
});
