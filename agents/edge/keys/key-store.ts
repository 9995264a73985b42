// Keys of the cluster on disk, so that a restart without the console keeps what was made with them valid. Caddy reads the file
// when it starts. Secrets: the file is private and nothing of it is ever logged.
import { readTextIfPresent, writeFileAtomic } from '../../kit/files.ts';
import { errorText, type Log } from '../../kit/log.ts';
import type { KeyKind, Keys } from './key-kind.ts';

interface StoredFile {
  clusterId: string;
  /** Decimal. */
  version: string;
  keys: unknown;
}

export interface KeyStoreOptions<K extends Keys> {
  kind: KeyKind<K>;
  path: string;
  clusterId: string;
  log: Log;
}

export class KeyStore<K extends Keys> {
  private readonly options: KeyStoreOptions<K>;
  private stored: K | undefined;
  /** Why the keys are not on disk; "" when they are. */
  problem = '';

  constructor(options: KeyStoreOptions<K>) {
    this.options = options;
    this.stored = read(options);
  }

  /** The stored keys; another object after each change. */
  get keys(): K | undefined {
    return this.stored;
  }

  /** 0 = none. */
  get version(): bigint {
    return this.stored?.version ?? 0n;
  }

  /** Takes keys over; true when they differ from the stored ones. Throws when they cannot be used. */
  replace(keys: K): boolean {
    const { kind, path, log } = this.options;
    const problem = problemOf(kind, keys);
    if (problem) throw new Error(`the ${kind.name} of the console are not valid: ${problem}`);
    const text = this.text(keys);
    const isSame = this.stored && text === this.text(this.stored);
    if (isSame && this.problem === '') return false;
    try {
      writeFileAtomic(path, `${text}\n`, 0o600);
      this.problem = '';
    } catch (error) {
      // They work from memory; the next fetch tries to write them again.
      this.problem = `${kind.name} not on disk: ${errorText(error)}`;
      log.error(`${kind.name} not writable, serving from memory`, { error: errorText(error) });
    }
    if (isSame) return false;
    this.stored = keys;
    return true;
  }

  private text(keys: K): string {
    const { kind, clusterId } = this.options;
    const stored: StoredFile = { clusterId, version: keys.version.toString(), keys: kind.toStored(keys) };
    return JSON.stringify(stored);
  }
}

function problemOf<K extends Keys>(kind: KeyKind<K>, keys: K): string | undefined {
  return keys.version === 0n ? 'they have no version' : kind.problemOf(keys);
}

function read<K extends Keys>({ kind, path, clusterId, log }: KeyStoreOptions<K>): K | undefined {
  const text = readTextIfPresent(path);
  if (text === undefined) return undefined;
  try {
    const stored = JSON.parse(text) as StoredFile;
    if (stored.clusterId !== clusterId) return undefined;
    const keys = kind.fromStored(BigInt(stored.version), stored.keys);
    const problem = problemOf(kind, keys);
    if (problem) throw new Error(problem);
    return keys;
  } catch {
    // A parser's message may quote what it could not parse.
    log.error(`file of ${kind.name} not readable, agent fetches them again`, { path });
    return undefined;
  }
}
