import test from 'ava';
import { createLog, errorText } from '../../../../agents/kit/log.ts';
import { memoryLog } from '../helpers/log.ts';

test('a line is one JSON object with time, level, message and fields', (t) => {
  const { log, lines } = memoryLog();
  log.child({ process: 'agent' }).info('it works', { revision: 12n, list: [1n] });
  const line = JSON.parse(lines[0]!) as Record<string, unknown>;
  t.is(line.level, 'info');
  t.is(line.message, 'it works');
  t.is(line.process, 'agent');
  t.is(line.revision, '12');
  t.deepEqual(line.list, ['1']);
  t.true(lines[0]!.endsWith('\n'));
});

test('tokens and private keys never get into a line', (t) => {
  const { log, lines } = memoryLog();
  const key = '-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----';
  log.error('failed', { token: 'plain', error: new Error(`bad ewt_abcdefgh1234 and ${key}`), text: 'ewt_secret123' });
  for (const secret of ['plain', 'abcdefgh1234', 'abc\\n', 'secret123']) t.false(lines[0]!.includes(secret), secret);
});

test('lines below the level are left out', (t) => {
  const lines: string[] = [];
  createLog('warn', {}, (line) => lines.push(line)).info('no');
  t.is(lines.length, 0);
});

test('an error is told with its causes and without its stack', (t) => {
  const error = new Error('outer', { cause: new Error('inner') });
  t.is(errorText(error), 'outer: inner');
});
