// Development secrets: generated once per data folder, readable by its owner only.
import { randomBytes } from 'node:crypto';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';

export interface Secrets {
  /** SVC_MASTER_KEY: 32 bytes, base64. */
  masterKey: string;
  postgresPassword: string;
  redisPassword: string;
}

/** Reads the secrets of a data folder, generating them the first time. */
export function loadSecrets(file: string): Secrets {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Secrets;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  const secrets: Secrets = {
    masterKey: randomBytes(32).toString('base64'),
    postgresPassword: randomBytes(24).toString('hex'),
    redisPassword: randomBytes(24).toString('hex'),
  };
  writeFileSync(`${file}.new`, `${JSON.stringify(secrets, null, 1)}\n`, { mode: 0o600 });
  renameSync(`${file}.new`, file);
  return secrets;
}
