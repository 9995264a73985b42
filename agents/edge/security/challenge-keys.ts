// The cluster's challenge keys on disk, so that a restart without the console keeps passes valid. Caddy reads the file when
// it starts (svcchallenge/key_file.go). Secrets: the file is private and nothing of it is ever logged.
import { create } from '@bufbuild/protobuf';
import {
  type ChallengeKey,
  ChallengeKeySchema,
  type ChallengeKeys,
  ChallengeKeysSchema,
} from '../../../proto/gen/svc/node/v1/security_pb.js';
import { readTextIfPresent, writeFileAtomic } from '../../kit/files.ts';
import { errorText, type Log } from '../../kit/log.ts';

const ROLES = ['next', 'current', 'previous'] as const;
const ID = /^[A-Za-z0-9_-]{1,32}$/;
const MIN_SECRET_BYTES = 16;
const MAX_SECRET_BYTES = 256;

interface StoredKeys {
  clusterId: string;
  version: string;
  keys: Partial<Record<(typeof ROLES)[number], { id: string; secret: string }>>;
}

export interface ChallengeKeyStoreOptions {
  path: string;
  clusterId: string;
  log: Log;
}

export class ChallengeKeyStore {
  private readonly options: ChallengeKeyStoreOptions;
  private held: ChallengeKeys | undefined;
  /** Why the keys are not on disk; "" when they are. */
  problem = '';

  constructor(options: ChallengeKeyStoreOptions) {
    this.options = options;
    this.held = read(options);
  }

  /** The keys held; another object after each change. */
  get keys(): ChallengeKeys | undefined {
    return this.held;
  }

  /** 0 = none. */
  get version(): bigint {
    return this.held?.version ?? 0n;
  }

  /** Takes keys over; true when they differ from those held. Throws when they cannot be used. */
  replace(keys: ChallengeKeys): boolean {
    const problem = problemOf(keys);
    if (problem) throw new Error(`the console's challenge keys cannot be used: ${problem}`);
    const stored = JSON.stringify(toStored(keys, this.options.clusterId));
    const isSame = this.held && stored === JSON.stringify(toStored(this.held, this.options.clusterId));
    if (isSame && this.problem === '') return false;
    try {
      writeFileAtomic(this.options.path, `${stored}\n`, 0o600);
      this.problem = '';
    } catch (error) {
      // They work from memory; the next fetch tries to write them again.
      this.problem = `challenge keys not on disk: ${errorText(error)}`;
      this.options.log.error('challenge keys cannot be written, signing from memory', { error: errorText(error) });
    }
    if (isSame) return false;
    this.held = keys;
    return true;
  }
}

function problemOf(keys: ChallengeKeys): string | undefined {
  if (keys.version === 0n) return 'they have no version';
  if (!keys.current) return 'there is no current key';
  for (const role of ROLES) {
    const key = keys[role];
    if (!key) continue;
    if (!ID.test(key.id)) return `the id of the ${role} key is malformed`;
    if (key.secret.length < MIN_SECRET_BYTES || key.secret.length > MAX_SECRET_BYTES)
      return `the ${role} key has ${key.secret.length} bytes`;
  }
  return undefined;
}

function toStored(keys: ChallengeKeys, clusterId: string): StoredKeys {
  const stored: StoredKeys = { clusterId, version: keys.version.toString(), keys: {} };
  for (const role of ROLES) {
    const key = keys[role];
    if (key) stored.keys[role] = { id: key.id, secret: Buffer.from(key.secret).toString('base64') };
  }
  return stored;
}

function read({ path, clusterId, log }: ChallengeKeyStoreOptions): ChallengeKeys | undefined {
  const text = readTextIfPresent(path);
  if (text === undefined) return undefined;
  try {
    const stored = JSON.parse(text) as StoredKeys;
    if (stored.clusterId !== clusterId) return undefined;
    const keys = create(ChallengeKeysSchema, { version: BigInt(stored.version) });
    for (const role of ROLES) {
      const key = stored.keys[role];
      if (key) keys[role] = toKey(key);
    }
    const problem = problemOf(keys);
    if (problem) throw new Error(problem);
    return keys;
  } catch {
    // A parser's message may quote what it could not parse.
    log.error('the file of challenge keys cannot be read, fetching them again', { path });
    return undefined;
  }
}

function toKey({ id, secret }: { id: string; secret: string }): ChallengeKey {
  return create(ChallengeKeySchema, { id, secret: new Uint8Array(Buffer.from(secret, 'base64')) });
}
