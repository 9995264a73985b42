// `npm run restore`: a backup into an empty database.
import { parseArgs } from 'node:util';
import { databaseUrl, progressLines, runCommand, sealerOf, secretKeyOf, WrongUsage } from './lib/backup/command.ts';
import { restoreBackup } from './lib/backup/restore.ts';
import { say } from './lib/progress.ts';

const HELP = `Usage: DATABASE_URL=postgres://… [SVC_MASTER_KEY=…] npm run restore -- --from FILE [--key FILE]

Restores a backup into an empty database, migrates it to this release, and begins a new epoch: nodes compare everything
with it by themselves. Stop every process of the console first.

  --from FILE        the backup, of this release or an earlier one
  --key FILE         file with the secret key of an encrypted backup ("npm run backup -- keygen" wrote it)
  --any-master-key   restores although SVC_MASTER_KEY is not the key of the backup, and lists the secrets it does not open

With SVC_MASTER_KEY every secret is opened as a check. The whole file is read before the database is touched. Sessions,
trusted devices and unused enrollment tokens end. A restore that is canceled or killed leaves a database that no console starts
on: run the command again, and it starts over. DATABASE_DIRECT_URL wins over DATABASE_URL.

Exit status: 0 done, 1 not done, 2 wrong usage, 130 canceled.`;

function command() {
  try {
    const { values } = parseArgs({
      options: {
        from: { type: 'string' },
        key: { type: 'string' },
        'any-master-key': { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
      },
    });
    return values;
  } catch {
    throw new WrongUsage(HELP);
  }
}

await runCommand(async (signal) => {
  const { from, key, help, 'any-master-key': anyMasterKey } = command();
  if (help) {
    say(HELP);
    return;
  }
  if (!from) throw new WrongUsage(HELP);
  const begun = performance.now();
  const { contents, rows, epoch, ended, secrets } = await restoreBackup({
    databaseUrl: databaseUrl(HELP),
    file: from,
    secret: await secretKeyOf(key),
    sealer: sealerOf(process.env),
    anyMasterKey,
    signal,
    onProgress: progressLines(),
  });
  const { createdAt, masterKey, leftOut } = contents.header;
  say(
    `Restored ${contents.tables.size} tables with ${rows} rows in ${((performance.now() - begun) / 1000).toFixed(1)} s.`,
  );
  say(
    `Everything after ${createdAt} is lost: changes, bans and lifted bans, revoked keys. Make those again that you need.`,
  );
  if (leftOut.length > 0) say(`The backup was made without ${leftOut.join(' and ')}.`);
  say(
    `Ended: ${ended.sessions} sessions, ${ended.trustedDevices} trusted devices, ${ended.enrollmentTokens} unused enrollment tokens.`,
  );
  if (!secrets) {
    say(
      `Secrets were not tried, because SVC_MASTER_KEY is not set. The console needs the master key ${masterKey ?? 'of its choice'}.`,
    );
  } else if (secrets.closed.length === 0) {
    say(`All ${secrets.opened} secrets open.`);
  } else {
    say(`Secrets that SVC_MASTER_KEY does not open:\n  ${secrets.closed.join('\n  ')}`);
  }
  say(`Epoch ${epoch} begins. Start the console: nodes compare everything with it, and end with what the backup says.`);
});
