import test from 'ava';
import { describeOptions, type OptionSpec, parseOptions, UsageError } from '../../../../agents/kit/options.ts';

const SPECS: OptionSpec[] = [
  { name: 'state-dir', kind: 'text', default: '/var/lib/x', help: 'Folder.' },
  { name: 'ban-capacity', kind: 'integer', min: 100, max: 1000, default: 200, help: 'Entries.' },
  {
    name: 'http-listen',
    kind: 'list',
    default: [':80'],
    help: 'Address.',
    check: (text) => (text.includes(':') ? undefined : 'no port'),
  },
  { name: 'kernel-bans', kind: 'choice', choices: ['auto', 'on', 'off'], default: 'auto', help: 'When.' },
  { name: 'ban-max-mib', kind: 'integer', default: 32, aliases: ['ban-dict-mb'], help: 'MiB.' },
  { name: 'force', kind: 'flag', help: 'Replace.' },
];

function values(argv: string[], environment: Record<string, string> = {}): Record<string, unknown> {
  return Object.fromEntries(parseOptions(SPECS, argv, environment).values);
}

test('defaults fill what is not given', (t) => {
  t.deepEqual(values([]), {
    'state-dir': '/var/lib/x',
    'ban-capacity': 200,
    'http-listen': [':80'],
    'kernel-bans': 'auto',
    'ban-max-mib': 32,
    force: false,
  });
});

test('the command line wins over the environment, the environment over the default', (t) => {
  t.is(values([], { SVC_BAN_CAPACITY: '300' })['ban-capacity'], 300);
  t.is(values(['--ban-capacity', '400'], { SVC_BAN_CAPACITY: '300' })['ban-capacity'], 400);
  t.is(values([], { SVC_BAN_CAPACITY: '' })['ban-capacity'], 200);
});

test('lists are repeated or separated by commas and replace the default', (t) => {
  t.deepEqual(values(['--http-listen', ':81', '--http-listen', ':82,[::1]:83'])['http-listen'], [
    ':81',
    ':82',
    '[::1]:83',
  ]);
  t.deepEqual(values([], { SVC_HTTP_LISTEN: ':1, :2' })['http-listen'], [':1', ':2']);
});

test('an alias means its option', (t) => {
  t.is(values(['--ban-dict-mb', '64'])['ban-max-mib'], 64);
});

test('flags are true when given, or by 1 in the environment', (t) => {
  t.true(values(['--force']).force);
  t.true(values([], { SVC_FORCE: '1' }).force);
  t.false(values([], { SVC_FORCE: '0' }).force);
});

for (const [title, argv, environment] of [
  ['an unknown option', ['--frce'], {}],
  ['a positional argument', ['x'], {}],
  ['a missing value', ['--state-dir'], {}],
  ['an empty value', ['--state-dir', ''], {}],
  ['a number that is none', ['--ban-capacity', '1e3'], {}],
  ['a number with a sign', ['--ban-capacity=-200'], {}],
  ['a number below its range', ['--ban-capacity', '99'], {}],
  ['a number above its range', ['--ban-capacity', '1001'], {}],
  ['a choice that does not exist', ['--kernel-bans', 'maybe'], {}],
  ['a single option given twice', ['--state-dir', 'a', '--state-dir', 'b'], {}],
  ['an option and its alias together', ['--ban-max-mib', '1', '--ban-dict-mb', '2'], {}],
  ['a list item that fails its check', ['--http-listen', '80'], {}],
  ['a bad number in the environment', [], { SVC_BAN_CAPACITY: 'many' }],
  ['a bad flag in the environment', [], { SVC_FORCE: 'yes please' }],
] as [string, string[], Record<string, string>][]) {
  test(`refused: ${title}`, (t) => {
    t.throws(() => values(argv, environment), { instanceOf: UsageError });
  });
}

test('the help names option, default, range, alias and environment variable', (t) => {
  const text = describeOptions(SPECS);
  for (const part of [
    '--ban-capacity',
    '100 to 1000',
    'Default: 200',
    'SVC_BAN_CAPACITY',
    'Also --ban-dict-mb',
    'auto|on|off',
  ]) {
    t.true(text.includes(part), part);
  }
});

test('help is recognised before anything else is checked', (t) => {
  t.true(parseOptions(SPECS, ['--ban-capacity', '1', '--help'], {}).help);
});
