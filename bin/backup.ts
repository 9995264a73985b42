// `npm run backup`: a backup of the whole database, a pair of keys, a look into a backup, a restore drill.
import { open } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { OPTIONAL_TABLES } from '../models/backups/optional-tables.ts';
import { OPTIONAL_PARTS } from '../runtime/backup/header.ts';
import { generateBackupKeys } from '../runtime/backup/keys.ts';
import { readBackup, readBackupHeader } from '../runtime/backup/read-backup.ts';
import { writeBackup } from '../runtime/backup/write-backup.ts';
import {
  databaseUrl,
  progressLines,
  runCommand,
  sealerOf,
  secretKeyOf,
  sizeOf,
  WrongUsage,
} from './lib/backup/command.ts';
import { drill } from './lib/backup/drill.ts';
import { Refusal, say } from './lib/progress.ts';

const HELP = `Usage: DATABASE_URL=postgres://… npm run backup -- --to FILE|DIR [--recipient KEY]… [--without-logs] [--without-statistics]
       npm run backup -- keygen [--to FILE]
       npm run backup -- show --from FILE [--key FILE]
       DATABASE_URL=postgres://… npm run backup -- drill

  --to FILE|DIR          where the backup goes: a file that does not exist yet, or a folder, in which it is named after its time
  --recipient KEY        encrypts to a public key; may be given several times, and each secret key opens the backup
  --without-logs         leaves out security events
  --without-statistics   leaves out traffic of sites and clusters, metrics of nodes, counts of rules and times of changes

  keygen                 makes a pair of keys. Keep the secret key apart from the console, from the backups and from
                         SVC_MASTER_KEY: without it nobody reads the backups. With --to it goes to a file of mode 0600.
  show                   reads a whole backup and prints what it contains
  drill                  backs up, restores into a scratch database of the same server, compares every row, and drops it.
                         With SVC_MASTER_KEY it also opens every secret. Needs a user that may create databases.

A backup contains everything except sessions of the moment. Secrets in it stay sealed under SVC_MASTER_KEY, which is not in
it: keep that key apart. The file has mode 0600, is read back before it gets its name, and a canceled or failed backup
leaves nothing. The console keeps running meanwhile. DATABASE_DIRECT_URL wins over DATABASE_URL.

Exit status: 0 done, 1 not done, 2 wrong usage, 130 canceled.`;

interface Options {
  to?: string;
  from?: string;
  key?: string;
  recipient?: string[];
  'without-logs'?: boolean;
  'without-statistics'?: boolean;
}

function command() {
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: {
        to: { type: 'string' },
        from: { type: 'string' },
        key: { type: 'string' },
        recipient: { type: 'string', multiple: true },
        'without-logs': { type: 'boolean' },
        'without-statistics': { type: 'boolean' },
        help: { type: 'boolean', short: 'h', default: false },
      },
    });
    if (positionals.length > 1) throw new WrongUsage(HELP);
    return { word: positionals[0] ?? '', help: values.help, options: values as Options };
  } catch {
    // Not its message: it repeats what was typed, which may be a key.
    throw new WrongUsage(HELP);
  }
}

const version = process.env.SVC_VERSION || 'dev';

async function backUp(options: Options, signal: AbortSignal): Promise<void> {
  if (!options.to) throw new WrongUsage(HELP);
  const tell = progressLines();
  const begun = performance.now();
  const { file, bytes, rows, tables, header } = await writeBackup({
    databaseUrl: databaseUrl(HELP),
    to: options.to,
    recipients: options.recipient ?? [],
    leftOut: OPTIONAL_PARTS.filter((part) => options[`without-${part}`]),
    optionalTables: OPTIONAL_TABLES,
    version,
    signal,
    onProgress: ({ phase, table, rows: done, totalRows }) =>
      tell(phase, `${table}, ${done} rows${totalRows > done ? ` of about ${Math.round(totalRows)}` : ''}`),
  });
  if (header.recipients.length === 0)
    say('The backup is not encrypted: password hashes and settings in it can be read.');
  if (header.masterKey)
    say(`Its secrets are sealed under the master key ${header.masterKey}. Keep that key apart from it.`);
  const seconds = ((performance.now() - begun) / 1000).toFixed(1);
  say(`Backup of ${header.createdAt}, verified: ${tables.size} tables, ${rows} rows, ${sizeOf(bytes)}, ${seconds} s`);
  process.stdout.write(`${file}\n`);
}

async function keygen(to: string | undefined): Promise<void> {
  const { publicKey, secretKey } = generateBackupKeys();
  const text = `# Secret key of backups; public key: ${publicKey}\n${secretKey}\n`;
  if (to === undefined) {
    process.stdout.write(text);
    return;
  }
  try {
    const handle = await open(to, 'wx', 0o600);
    await handle.writeFile(text);
    await handle.sync();
    await handle.close();
  } catch (error) {
    throw new Refusal(`The key file cannot be written (${(error as NodeJS.ErrnoException).code}): ${to}`);
  }
  process.stdout.write(`${publicKey}\n`);
}

async function show({ from, key }: Options, signal: AbortSignal): Promise<void> {
  if (!from) throw new WrongUsage(HELP);
  const header = await readBackupHeader(from);
  say(`backup ${header.id} of ${header.createdAt}, written by console ${header.console}`);
  say(`last migration ${header.migrations.at(-1)}; master key ${header.masterKey ?? 'none yet'}`);
  say(`encrypted to ${header.recipients.map(({ publicKey }) => publicKey).join(', ') || 'nobody'}`);
  if (header.leftOut.length > 0) say(`without ${header.leftOut.join(' and ')}`);
  const { tables } = await readBackup(from, { secret: await secretKeyOf(key) }, {}, signal);
  for (const [table, { rows, bytes, sha256 }] of tables)
    process.stdout.write(`${table}\t${rows}\t${bytes}\t${sha256}\n`);
  say(`${tables.size} tables; the whole file is intact`);
}

async function runDrill(signal: AbortSignal): Promise<void> {
  const done = await drill({
    databaseUrl: databaseUrl(HELP),
    version,
    sealer: sealerOf(process.env),
    signal,
    onProgress: progressLines(),
  });
  const { secrets } = done.restored;
  const seconds = (ms: number) => (ms / 1000).toFixed(1);
  say(`backup ${sizeOf(done.backup.bytes)} in ${seconds(done.backupMs)} s, restore in ${seconds(done.restoreMs)} s`);
  say(`${done.tables} tables with ${done.restored.rows} rows are the same`);
  if (!secrets) say('secrets were not tried: SVC_MASTER_KEY is not set');
  else if (secrets.closed.length === 0) say(`all ${secrets.opened} secrets open`);
  else throw new Refusal(`Secrets that SVC_MASTER_KEY does not open:\n  ${secrets.closed.join('\n  ')}`);
}

await runCommand(async (signal) => {
  const { word, help, options } = command();
  if (help) say(HELP);
  else if (word === '') await backUp(options, signal);
  else if (word === 'keygen') await keygen(options.to);
  else if (word === 'show') await show(options, signal);
  else if (word === 'drill') await runDrill(signal);
  else throw new WrongUsage(HELP);
});
