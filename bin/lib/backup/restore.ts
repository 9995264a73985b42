// Restores a backup into an empty database: the tables as the backup's migrations make them, its rows in one transaction,
// then the migrations of this release, and last a new epoch. Until that commits, the database says that it is unfinished.
import type { KeyObject } from 'node:crypto';
import { migrate, migrationNames } from '../../../migrations/run.ts';
import { recordAudit } from '../../../models/audit/audit-entry.ts';
import { type EndedByRestore, endAfterRestore } from '../../../models/backups/after-restore.ts';
import { beginRestoredEpoch } from '../../../models/config/epoch.ts';
import { BackupError } from '../../../runtime/backup/backup-error.ts';
import type { BackupHeader } from '../../../runtime/backup/header.ts';
import { type BackupContents, readBackup, readBackupHeader } from '../../../runtime/backup/read-backup.ts';
import { withSession } from '../../../runtime/backup/session.ts';
import { systemCall } from '../../../runtime/call.ts';
import { withOneConnection } from '../../../runtime/one-connection.ts';
import type { Sealer } from '../../../runtime/sealer.ts';
import { writeAlone } from '../../../runtime/write.ts';
import { claimDatabase, FINISH } from './empty-database.ts';
import { loader } from './load.ts';
import { checkSecrets, type SecretsCheck } from './secrets-check.ts';

export type RestorePhase = 'check' | 'tables' | 'rows' | 'migrate' | 'finish';

export interface RestoreOptions {
  databaseUrl: string;
  file: string;
  /** Of a recipient; null when the backup is not encrypted. */
  secret: KeyObject | null;
  /** Null: secrets are not tried. */
  sealer: Sealer | null;
  /** Restores although the sealer is of another master key. */
  anyMasterKey?: boolean;
  signal?: AbortSignal;
  onProgress?(phase: RestorePhase, detail: string): void;
  /** Called when the rows are there as they were, before anything else changes them. */
  onLoaded?(): Promise<void>;
}

export interface Restored {
  contents: BackupContents;
  rows: number;
  epoch: string;
  ended: EndedByRestore;
  /** Null: no key was given. */
  secrets: SecretsCheck | null;
}

/** Restores a backup. Throws BackupError; the database is unchanged, or says that it is unfinished. */
export async function restoreBackup(options: RestoreOptions): Promise<Restored> {
  const { databaseUrl, file, secret, sealer, signal } = options;
  const tell = options.onProgress ?? (() => undefined);
  const header = await readBackupHeader(file);
  await refuseNewer(header);
  refuseOtherKey(header, sealer, options.anyMasterKey ?? false);
  // All of it once before the database is touched: a damaged file changes nothing.
  tell('check', file);
  const contents = await readBackup(file, { secret }, {}, signal);
  return withSession(databaseUrl, signal, async (client) => {
    await claimDatabase(client, header.id);
    const only = new Set(header.migrations);
    await migrate(databaseUrl, ({ name }) => tell('tables', name), { only });
    signal?.throwIfAborted();
    await client.query('begin');
    const load = await loader(client);
    let rows = 0;
    await readBackup(
      file,
      { secret },
      {
        ...load,
        async tableEnd({ table }, totals) {
          rows += totals.rows;
          tell('rows', `${table}: ${totals.rows} rows`);
        },
      },
      signal,
    );
    await load.end();
    await client.query('commit');
    await options.onLoaded?.();
    await migrate(databaseUrl, ({ name }) => tell('migrate', name), {});
    signal?.throwIfAborted();
    // Statistics of the tables, without which the first queries of a console would be planned for empty ones.
    await client.query('analyze');
    tell('finish', 'new epoch');
    const secrets = sealer ? await checkSecrets(client, sealer) : null;
    return { contents, rows, secrets, ...(await finish(databaseUrl, header)) };
  });
}

async function finish(databaseUrl: string, header: BackupHeader): Promise<Pick<Restored, 'epoch' | 'ended'>> {
  return withOneConnection(databaseUrl, (sql) =>
    writeAlone(sql, systemCall('restore'), async (tx) => {
      const epoch = await beginRestoredEpoch(tx.sql, 'restored');
      const ended = await endAfterRestore(tx.sql, tx.now);
      await recordAudit(tx, 'system.restore', null, { backupId: header.id, backupAt: header.createdAt, ...ended });
      await tx.sql.raw(FINISH);
      return { epoch, ended };
    }),
  );
}

async function refuseNewer({ migrations, console: version }: BackupHeader): Promise<void> {
  const known = new Set(await migrationNames());
  const unknown = migrations.filter((name) => !known.has(name));
  if (unknown.length > 0) {
    throw new BackupError(
      'newer',
      `A newer release (${version}) wrote this backup: this one lacks ${unknown.join(', ')}. Restore it with that release or a later one.`,
    );
  }
}

function refuseOtherKey({ masterKey }: BackupHeader, sealer: Sealer | null, anyMasterKey: boolean): void {
  if (!sealer || masterKey === null || anyMasterKey) return;
  if (masterKey === sealer.fingerprint || masterKey === sealer.previousFingerprint) return;
  throw new BackupError(
    'other_master_key',
    `The secrets of this backup are sealed under the master key ${masterKey}; SVC_MASTER_KEY is ${sealer.fingerprint}. ` +
      'Set SVC_MASTER_KEY to the key of then. To restore without its secrets, add --any-master-key.',
  );
}
