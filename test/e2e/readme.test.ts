// The lines of the README and of docs/demo.md, run as they stand there, and those of docs/running.md that need `npm start`.
// Alone with: the ports that launchers pick
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { type Demo, demoFolder, processesOf, removeDemo, root, startDemo } from '../helpers/demo.ts';
import { documentLines, runShell } from '../helpers/documents.ts';
import { eventually } from '../helpers/eventually.ts';

const README = 'README.md';

test.serial(
  'the lines for the demo show a ban and its end, and a flood that raises the level and is over',
  async (t) => {
    const folder = demoFolder('readme');
    await removeDemo(folder);
    const demo: Demo = await startDemo(folder);
    t.teardown(async () => {
      await demo.end('SIGINT');
      await eventually(() => processesOf(folder).length === 0);
      await removeDemo(folder);
    });
    const written = documentLines('docs/demo.md', 'demo', 'flood');
    const lines = written.replace('npm run -s demo:env', `npm run -s demo:env -- --data ${folder}`);
    t.not(lines, written);
    const shown = await runShell(lines, {});
    t.deepEqual(
      shown.lines.filter((line) => /^\d{3}$/.test(line)),
      ['200', '403', '200', '200'],
    );
    const levels = shown.lines.filter((line) => /^(normal|cookie302|js|pow|captcha)$/.test(line));
    t.is(levels.length, 3, shown.output);
    t.is(levels[0], 'normal');
    t.not(levels[1], 'normal');
    t.is(levels[2], 'normal');
    const steps = shown.lines.flatMap((line) => /^(\w+ → \w+) \(/.exec(line)?.[1] ?? []);
    t.is(steps[0], 'normal → cookie302', shown.output);
    t.is(steps.at(-1), 'cookie302 → normal');
    t.true(steps.includes('cookie302 → js'));
    t.regex(shown.lines.at(-1)!, /"reason":"cc_ip_rate"/);
  },
);

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
  const address = await eventually(
    () => /The console runs at (\S+)[\s\S]*setup with the setup token/.exec(output)?.[1],
    {
      timeoutMs: 300_000,
    },
  ).catch((error: unknown) => {
    throw new Error(`${String(error)}\n${output}`);
  });
  const token = /"setupToken":"([^"]+)"/.exec(output)?.[1];
  t.truthy(token, 'the setup token is logged');
  // Its own state folder, so that a node of the developer's is left alone.
  const lines = documentLines(README, 'by-hand').replaceAll('data/edge', 'data/edge-readme-test');
  const shown = await runShell(lines, { CONSOLE: address, TOKEN: token, PASSWORD: 'correct horse battery staple' });
  t.regex(shown.output, /<h1>It works<\/h1>/);
  t.is(shown.lines.at(-1), '403', shown.output);

  const database = documentLines('docs/running.md', 'own-database').replaceAll('data/console', folder);
  const recovered = await runShell(`${database}\nnpm run -s recover -- restored`, {});
  t.regex(recovered.output, /epoch \d+ started/);
});
