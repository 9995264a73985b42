import test from 'ava';
import { type Cidr, parseCidr } from '../../../../agents/edge/bans/cidr.ts';
import {
  defaultTableName,
  type HashSet,
  renderAllowed,
  renderHostChanges,
  renderPrefixes,
  renderTable,
  setOf,
} from '../../../../agents/edge/nft/script.ts';

const cidr = (text: string): Cidr => parseCidr(text)!;
const host = (text: string, remainingMs: number | undefined) => ({
  set: setOf(cidr(text)) as HashSet,
  address: cidr(text).start,
  remainingMs,
});

test('each form of ban has its set', (t) => {
  t.is(setOf(cidr('192.0.2.1')), 'ban4');
  t.is(setOf(cidr('192.0.2.0/31')), 'ban4n');
  t.is(setOf(cidr('192.0.0.0/16')), 'ban4n');
  t.is(setOf(cidr('2001:db8::1')), 'ban6');
  t.is(setOf(cidr('2001:db8::/64')), 'ban6p');
  t.is(setOf(cidr('2001:db8::/48')), 'ban6n');
  t.is(setOf(cidr('2001:db8::/65')), 'ban6n');
});

test('a changed host is added, deleted and added with its time, so that it works whether it was there or not', (t) => {
  t.deepEqual(
    renderHostChanges('svc_x', [
      host('192.0.2.1', 1500),
      host('192.0.2.2', undefined),
      host('2001:db8:0:1::/64', 60_000),
    ]),
    [
      'add element inet svc_x ban4 { 192.0.2.1, 192.0.2.2 }',
      'delete element inet svc_x ban4 { 192.0.2.1, 192.0.2.2 }',
      'add element inet svc_x ban4 { 192.0.2.1 timeout 2s }',
      'add element inet svc_x ban6p { 2001:db8:0:1:: }',
      'delete element inet svc_x ban6p { 2001:db8:0:1:: }',
      'add element inet svc_x ban6p { 2001:db8:0:1:: timeout 60s }',
    ],
  );
});

test('a time is whole seconds, rounded up, at least one', (t) => {
  const times = [1, 999, 1000, 1001, 604_800_000].map(
    (ms) => renderHostChanges('svc_x', [host('192.0.2.1', ms)]).at(-1)!,
  );
  t.deepEqual(
    times.map((line) => /timeout (\d+)s/.exec(line)![1]),
    ['1', '1', '1', '2', '604800'],
  );
});

test('a statement carries at most 5,000 elements', (t) => {
  const many = Array.from({ length: 5001 }, (_, index) => host(`10.0.${index >> 8}.${index & 255}`, 1000));
  const lines = renderHostChanges('svc_x', many);
  t.is(lines.length, 6);
  t.true(lines.every((line) => line.split(',').length <= 5000));
});

test('a prefix set is flushed and written as a whole, with ranges where splitting made some', (t) => {
  t.deepEqual(renderPrefixes('svc_x', 'ban4n', []), ['flush set inet svc_x ban4n']);
  t.deepEqual(renderPrefixes('svc_x', 'ban4n', [{ start: 0x0a000000n, end: 0x0a0000ffn, remainingMs: 5000 }]), [
    'flush set inet svc_x ban4n',
    'add element inet svc_x ban4n { 10.0.0.0-10.0.0.255 timeout 5s }',
  ]);
});

test('exempt addresses are split by family', (t) => {
  t.deepEqual(renderAllowed('svc_x', [cidr('127.0.0.0/8'), cidr('::1'), cidr('192.0.2.9')]), [
    'flush set inet svc_x allow4',
    'add element inet svc_x allow4 { 127.0.0.0/8, 192.0.2.9/32 }',
    'flush set inet svc_x allow6',
    'add element inet svc_x allow6 { ::1/128 }',
  ]);
});

test('the table accepts loopback, own and exempt addresses before anything is dropped', (t) => {
  const lines = renderTable('svc_x', 'node=a pid=1 start=2').map((line) => line.trim());
  const at = (part: string): number => lines.findIndex((line) => line.includes(part));
  const firstDrop = at('drop');
  for (const part of ['iif "lo" accept', 'fib saddr type local accept', '@allow4 accept', '@allow6 accept']) {
    t.true(at(part) >= 0 && at(part) < firstDrop, part);
  }
  for (const set of ['ban4', 'ban6', 'ban6p', 'ban4n', 'ban6n'])
    t.true(
      lines.some((line) => line.endsWith(`@${set} counter drop`)),
      set,
    );
  t.true(at('hook input priority -300') >= 0);
});

test('names that could carry a script are refused', (t) => {
  for (const name of ['svc x', 'svc;flush ruleset', 'svc}', '', '1svc', 'svc\n']) {
    t.throws(() => renderTable(name, ''), { instanceOf: TypeError }, name);
    t.throws(() => renderHostChanges(name, [host('192.0.2.1', 1)]), { instanceOf: TypeError }, name);
  }
  t.throws(() => renderTable('svc_x', 'a" }'), { instanceOf: TypeError });
});

test('the table is named after the node', (t) => {
  t.is(defaultTableName('0197F3a1-77cc-7d6e'), 'svc_0197f3a177cc');
  t.is(defaultTableName('"; flush ruleset'), 'svc_flushruleset'.slice(0, 16));
});
