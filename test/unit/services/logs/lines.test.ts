import test from 'ava';
import type { LogEntry } from '../../../../contract/resources/logs.ts';
import { entryOf } from '../../../../models/logs/log-entry.ts';
import { CSV_HEAD, csvOf, jsonOf } from '../../../../services/logs/lines.ts';
import { logRow } from '../../../helpers/log-store-suite.ts';

/** Records of RFC 4180. */
function parsed(csv: string): string[][] {
  const records: string[][] = [];
  let record: string[] = [];
  for (const [, quoted, plain, end] of csv.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/g)) {
    record.push(quoted === undefined ? plain! : quoted.replaceAll('""', '"'));
    if (end === ',') continue;
    records.push(record);
    record = [];
  }
  return records;
}

const columns = parsed(CSV_HEAD)[0]!;

/** What a client sends, and what a cell says. */
const HOSTILE: Readonly<Record<string, [sent: string, cell: string]>> = {
  'a formula': ['=cmd|/c calc!A1', "'=cmd|/c calc!A1"],
  'a sum': ['+1+1', "'+1+1"],
  'a difference': ['-2+3', "'-2+3"],
  'a reference': ['@SUM(A1)', "'@SUM(A1)"],
  'a formula after a tab': ['\t=1+1', '\\x09=1+1'],
  'a formula after a line': ['x\r\n=1+1', 'x\\x0d\\x0a=1+1'],
  'an escape sequence': ['\u001b[31mred\u001b]0;title\u0007', '\\x1b[31mred\\x1b]0;title\\x07'],
  'an escape sequence of one character': ['\u009b31mred', '\\x9b31mred'],
  'separators and quotes': ['a,"b",c', 'a,"b",c'],
  'the end of a cell': ['","=1+1', '","=1+1'],
  'not UTF-8': ['a\ufffdb', 'a\ufffdb'],
  'other letters': ['é\u{1f600}', 'é\u{1f600}'],
  'a long path': [`/${'x'.repeat(2047)}`, `/${'x'.repeat(2047)}`],
};

for (const [title, [sent, cell]] of Object.entries(HOSTILE)) {
  test(`${title} stays a text of one cell, and is no command of a terminal`, (t) => {
    const headers = [{ name: 'x-note', value: sent }];
    const row = logRow('site', Date.parse('2026-03-01T00:00:00Z'), { path: sent, userAgent: sent, headers });
    const entry = entryOf(row, sent);
    const records = parsed(csvOf(entry));
    t.is(records.length, 1);
    t.is(records[0]!.length, columns.length);
    const of = (name: keyof LogEntry) => records[0]![columns.indexOf(name)];
    t.is(of('path'), cell);
    t.is(of('userAgent'), cell);
    t.is(of('nodeName'), cell);
    t.regex(of('time')!, /^2026-03-01T00:00:00/);
    for (const text of [csvOf(entry).slice(0, -2), jsonOf(entry).slice(0, -1)]) {
      // biome-ignore lint/suspicious/noControlCharactersInRegex: none may be there
      t.notRegex(text, /[\u0000-\u001f\u007f-\u009f]/);
    }
    t.deepEqual(JSON.parse(jsonOf(entry)), entry);
  });
}
