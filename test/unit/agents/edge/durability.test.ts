// Every call by which the agent writes fails once, in each way a disk fails. Whatever was acknowledged survives a crash of the
// machine right after it, the last good state survives too, and the next attempt succeeds.
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import test, { type ExecutionContext } from 'ava';
import { BanStore } from '../../../../agents/edge/bans/ban-store.ts';
import { ensureQuicKey } from '../../../../agents/edge/caddy/quic-key.ts';
import { CertificatePack } from '../../../../agents/edge/certificates/certificate-pack.ts';
import { fingerprintBytes } from '../../../../agents/edge/certificates/fingerprint.ts';
import { ConfigStore } from '../../../../agents/edge/config/config-store.ts';
import { KeyStore } from '../../../../agents/edge/keys/key-store.ts';
import { SESSION_TICKET_KEYS } from '../../../../agents/edge/keys/session-ticket-keys.ts';
import { ClockFile } from '../../../../agents/edge/run/clock-file.ts';
import { NodeCapabilities } from '../../../../agents/edge/run/node-capabilities.ts';
import { StatusFile } from '../../../../agents/edge/run/status-file.ts';
import { SecurityJournal } from '../../../../agents/edge/security/security-journal.ts';
import { Spool } from '../../../../agents/edge/stats/spool.ts';
import { openSpoolFolder } from '../../../../agents/edge/stats/spool-files.ts';
import type { NodeIdentity } from '../../../../agents/kit/channel-client.ts';
import { writeFileAtomic } from '../../../../agents/kit/files.ts';
import { loadIdentity, promoteNext, saveIdentity, saveNextKey } from '../../../../agents/kit/identity.ts';
import { Journal } from '../../../../agents/kit/journal.ts';
import { EntrySchema } from '../../../../proto/gen/svc/config/v1/entry_pb.js';
import { SecurityBatchSchema } from '../../../../proto/gen/svc/edge/v1/edge_pb.js';
import { BanPositionSchema, BanSchema, BanSource } from '../../../../proto/gen/svc/node/v1/bans_pb.js';
import { CertificateMaterialSchema } from '../../../../proto/gen/svc/node/v1/certificates_pb.js';
import { ConfigPositionSchema } from '../../../../proto/gen/svc/node/v1/config_pb.js';
import { TestAuthority } from '../helpers/authority.ts';
import { FAULTS, FailingDisk } from '../helpers/failing-disk.ts';
import { memoryLog } from '../helpers/log.ts';
import { ownBan, sessionTicketKeys } from '../helpers/security.ts';

const { log } = memoryLog();
const NODE = { nodeId: 'n', clusterId: 'c', log };
/** More than any subject makes for one change. */
const MAX_CALLS = 60;
const RETRIES = 3;

interface Running {
  /** Writes change number `n`, 1 to 9. True when that and all before are acknowledged to be on disk. */
  write(n: number): boolean | Promise<boolean>;
  close?(): Promise<void>;
}

interface Subject {
  name: string;
  start(folder: string): Running;
  /** The newest change that a start on this folder finds, with all before; 0 for none. Throws when the folder cannot be used. */
  newest(folder: string): number | Promise<number>;
}

/** The newest of changes that must be there without a gap. */
function last(found: readonly number[]): number {
  const sorted = [...new Set(found)].sort((left, right) => left - right);
  if (sorted.some((n, at) => n !== at + 1)) throw new Error(`a change is missing among ${sorted.join()}`);
  return sorted.length;
}

function openJournal(folder: string) {
  const found: number[] = [];
  const journal = Journal.open({
    path: join(folder, 'x.journal'),
    log,
    header: Buffer.from('header'),
    accept: () => true,
    onRecord: (payload) => {
      found.push(Number(payload.toString()));
      return true;
    },
    keepsBefore: true,
  });
  return { journal, found };
}

const newestInJournal = async (folder: string): Promise<number> => {
  const { journal, found } = openJournal(folder);
  await journal.close();
  return last(found);
};

const appends: Subject = {
  name: 'journal, append',
  start: (folder) => {
    const { journal, found } = openJournal(folder);
    let held = last(found);
    return {
      write: async (n) => {
        for (; held < n; held++) journal.append(Buffer.from(`${held + 1}`));
        await journal.sync();
        return true;
      },
      close: () => journal.close(),
    };
  },
  newest: newestInJournal,
};

const rewrites: Subject = {
  name: 'journal, rewrite with an append meanwhile',
  start: (folder) => {
    const { journal, found } = openJournal(folder);
    const held = new Set(found);
    return {
      write: async (n) => {
        const before = [...held];
        await journal.rewrite(
          async (draft) => {
            for (const number of before) draft.append(Buffer.from(`${number}`));
            for (let number = before.length + 1; number <= n; number++) {
              journal.append(Buffer.from(`${number}`));
              held.add(number);
            }
            await journal.sync();
          },
          () => undefined,
        );
        return true;
      },
      close: () => journal.close(),
    };
  },
  newest: newestInJournal,
};

const openSecurity = (folder: string) =>
  SecurityJournal.open({ ...NODE, path: join(folder, 'security.journal'), capacity: 100 });

const security: Subject = {
  name: 'security journal',
  start: (folder) => {
    const journal = openSecurity(folder);
    return {
      write: async (n) => {
        for (let sequence = Number(journal.state.cursor.sequence) + 1; sequence <= n; sequence++) {
          const bans = [ownBan(`192.0.2.${sequence}/32`, Date.now())];
          journal.takeBatch(create(SecurityBatchSchema, { instanceId: 'one', sequence: BigInt(sequence), bans }));
        }
        const acknowledged = (await journal.acknowledgeable('one')) >= BigInt(n);
        if (!acknowledged) await journal.maintain();
        return acknowledged;
      },
      close: () => journal.close(),
    };
  },
  newest: async (folder) => {
    const journal = openSecurity(folder);
    const bans = journal.state.liveBans().map(({ cidr }) => Number(/\.(\d)\//.exec(cidr)![1]));
    await journal.close();
    return last(bans);
  },
};

const openBans = (folder: string) => BanStore.open({ ...NODE, path: join(folder, 'bans.journal') });

/** The console sends again what the position of a store says it lacks. Closing acknowledges. */
const bans: Subject = {
  name: 'ban store',
  start: (folder) => {
    let store = openBans(folder);
    return {
      write: async (n) => {
        const epoch = 1n;
        for (let sequence = Number(store.position.sequence) + 1; sequence <= n; sequence++) {
          const now = Date.now();
          const ban = create(BanSchema, {
            id: `b${sequence}`,
            cidr: `192.0.2.${sequence}/32`,
            source: BanSource.MANUAL,
            createdAtMs: BigInt(now),
            expiresAtMs: BigInt(now + 3_600_000),
          });
          const { rows } = store.accept([ban], 0);
          store.apply(create(BanPositionSchema, { epoch, sequence: BigInt(sequence) }), rows, []);
        }
        await store.maintain();
        const isWell = store.problem === '';
        await store.close().finally(() => {
          store = openBans(folder);
        });
        return isWell;
      },
      close: () => store.close(),
    };
  },
  newest: async (folder) => {
    const store = openBans(folder);
    const found = last(store.ordered().map(({ id }) => Number(id.slice(1))));
    const sequence = Number(store.position.sequence);
    await store.close();
    if (sequence !== found) throw new Error(`position ${sequence} with ${found} bans`);
    return found;
  },
};

const observer = { put: () => undefined, remove: () => undefined, clear: () => undefined };
const openConfig = (folder: string) => ConfigStore.open({ ...NODE, path: join(folder, 'config.journal'), observer });

const config: Subject = {
  name: 'configuration store',
  start: (folder) => {
    let store = openConfig(folder);
    return {
      write: async (n) => {
        for (let revision = Number(store.position.revision) + 1; revision <= n; revision++) {
          const upserts = [create(EntrySchema, { kind: 'site', id: `s${revision}`, body: Buffer.from('body') })];
          const setHash = store.hashAfter(upserts, []);
          const position = create(ConfigPositionSchema, { epoch: 1n, revision: BigInt(revision), setHash });
          store.apply({ position, upserts, deletes: [] });
        }
        store.flush();
        await store.compact();
        const isWell = store.problem === '' && (await store.verify());
        await store.close().finally(() => {
          store = openConfig(folder);
        });
        return isWell;
      },
      close: () => store.close(),
    };
  },
  newest: async (folder) => {
    const store = openConfig(folder);
    const { size, hasDrifted } = store;
    const revision = Number(store.position.revision);
    await store.close();
    if (hasDrifted || size !== revision) throw new Error(`revision ${revision} with ${size} entries`);
    return revision;
  },
};

const openPack = (folder: string) => CertificatePack.open({ path: join(folder, 'certificates.pack'), log });
const nameOf = (n: number) => String(n).padStart(32, '0');

const pack: Subject = {
  name: 'pack of certificates',
  start: (folder) => {
    const open = openPack(folder);
    return {
      write: async (n) => {
        for (let number = 1; number <= n; number++) {
          if (open.has(nameOf(number))) continue;
          const fingerprint = fingerprintBytes(nameOf(number));
          const material = { certificateId: `crt_${number}`, fingerprint, chain: [new Uint8Array([number])] };
          await open.put([create(CertificateMaterialSchema, { ...material, privateKey: new Uint8Array(9) })]);
        }
        await open.compact(() => true);
        return true;
      },
      close: () => open.close(),
    };
  },
  newest: async (folder) => {
    const open = openPack(folder);
    const numbers = [1, 2, 3, 4, 5, 6, 7, 8, 9].filter((n) => open.chain(nameOf(n))?.[0]?.[0] === n);
    await open.close();
    return last(numbers);
  },
};

const openSpool = (folder: string) => {
  const { files } = openSpoolFolder(folder, 'n');
  return new Spool({ files, log, now: () => 1_800_000_000 });
};

const spool: Subject = {
  name: 'spool of counts',
  start: (folder) => {
    const open = openSpool(folder);
    return {
      // The data plane keeps a drain until its number is named.
      write: (n) => {
        for (let drained = Number(open.drained) + 1; drained <= n; drained++)
          open.add(BigInt(drained), { minutes: [], gaps: [] }, 1_800_000_000 + drained);
        return true;
      },
    };
  },
  newest: (folder) => Number(openSpool(folder).drained),
};

const openKeys = (folder: string) =>
  new KeyStore({ kind: SESSION_TICKET_KEYS, path: join(folder, 'keys.json'), clusterId: 'c', log });

const keys: Subject = {
  name: 'keys of session tickets',
  start: (folder) => {
    const store = openKeys(folder);
    return {
      write: (n) => {
        store.replace(sessionTicketKeys(n));
        return store.problem === '';
      },
    };
  },
  newest: (folder) => Number(openKeys(folder).version),
};

const atomic: Subject = {
  name: 'a file that is replaced',
  start: (folder) => ({
    write: (n) => {
      writeFileAtomic(join(folder, 'file'), `${n}`);
      return true;
    },
  }),
  newest: (folder) => Number(readFileSync(join(folder, 'file'), 'utf8')),
};

async function attempt(work: () => boolean | Promise<boolean>): Promise<boolean> {
  try {
    return await work();
  } catch {
    return false;
  }
}

async function until(work: () => boolean | Promise<boolean>): Promise<boolean> {
  for (let tries = 0; tries < RETRIES; tries++) if (await attempt(work)) return true;
  return false;
}

for (const subject of [appends, rewrites, security, bans, config, pack, spool, keys, atomic]) {
  for (const fault of FAULTS) {
    test.serial(`${subject.name}: ${fault} at any call loses nothing that was acknowledged`, async (t) => {
      let calls = 0;
      for (let failed = true; failed && calls < MAX_CALLS; calls++) failed = await failOnce(t, subject, calls, fault);
      t.true(calls > 1 && calls < MAX_CALLS, `${calls} calls`);
    });
  }
}

/** Lets one call fail; false when there are not so many. */
async function failOnce(
  t: ExecutionContext,
  { start, newest }: Subject,
  calls: number,
  fault: (typeof FAULTS)[number],
): Promise<boolean> {
  const failing = new FailingDisk(t);
  const { folder } = failing;
  const at = `call ${calls}`;
  const running = start(folder);
  t.true(await attempt(() => running.write(1)), at);
  failing.failAfter(calls, fault);
  const during = await attempt(() => running.write(2));
  const came = failing.disarm();
  t.true((await newest(failing.crashed())) >= (during ? 2 : 1), `${at}: after the crash`);
  t.true(await until(() => running.write(3)), `${at}: next attempt`);
  t.is(await newest(failing.crashed()), 3, `${at}: after the next attempt`);
  await running.close?.();
  // The same while an agent starts on what the one before left.
  failing.failAfter(calls, fault);
  let again: Running | undefined;
  const started = await attempt(async () => {
    again = start(folder);
    return again.write(4);
  });
  const cameAtStart = failing.disarm();
  t.true((await newest(failing.crashed())) >= (started ? 4 : 3), `${at}: after a start`);
  again ??= start(folder);
  t.true(await until(() => again!.write(5)), `${at}: after a start that failed`);
  t.is(await newest(failing.crashed()), 5, at);
  await again.close?.();
  return came || cameAtStart;
}

test.serial('files without a promise: the last good one survives every fault, and the next write replaces it', (t) => {
  const files = [
    {
      name: 'clock',
      write: (folder: string, n: number) => new ClockFile(join(folder, 'clock.json'), log).keep(reading(n)),
      read: (folder: string) => (new ClockFile(join(folder, 'clock.json'), log).read()?.offsetMs ?? 0) / 1000,
    },
    {
      name: 'capabilities',
      write: (folder: string, n: number) =>
        new NodeCapabilities(join(folder, 'capabilities.json'), log).observe([`test-v${n}`]),
      read: (folder: string) => {
        const names = [...new NodeCapabilities(join(folder, 'capabilities.json'), log).names()];
        return Number(names.find((name) => name.startsWith('test-v'))?.slice('test-v'.length) ?? 0);
      },
    },
    {
      name: 'secret of QUIC',
      // Made once.
      write: (folder: string) => ensureQuicKey(join(folder, 'quic.key'), log),
      read: (folder: string) => (existsSync(join(folder, 'quic.key')) ? statSync(join(folder, 'quic.key')).size : 0),
    },
  ];
  for (const { name, write, read } of files)
    for (const fault of FAULTS)
      for (let calls = 0, came = true; came; calls++) {
        const failing = new FailingDisk(t);
        const { folder } = failing;
        write(folder, 1);
        const before = read(failing.crashed());
        t.true(before > 0, name);
        failing.failAfter(calls, fault);
        t.notThrows(() => write(folder, 2), name);
        came = failing.disarm();
        t.true(read(failing.crashed()) >= before, `${name}: ${fault} at call ${calls}`);
        write(folder, 3);
        t.true(read(failing.crashed()) >= Math.max(before, read(folder)), `${name}: next attempt`);
        t.deepEqual(
          readdirSync(folder).filter((file) => file.endsWith('.tmp')),
          [],
          'nothing is left behind',
        );
      }
});

const reading = (n: number) => ({ serverTimeMs: n * 3_600_000, offsetMs: n * 1000 });

test.serial('the status file: a fault costs one write of it', (t) => {
  for (const fault of FAULTS)
    for (let calls = 0, came = true; came; calls++) {
      const failing = new FailingDisk(t);
      const path = join(failing.folder, 'status.json');
      let n = 1;
      // Each start writes at once.
      const write = () => {
        const status = new StatusFile(path, log, () => ({ n }));
        status.start();
        const text = existsSync(path) ? readFileSync(path, 'utf8') : '{}';
        status.stop();
        return (JSON.parse(text) as { n?: number }).n;
      };
      t.is(write(), 1);
      failing.failAfter(calls, fault);
      n = 2;
      t.notThrows(write);
      came = failing.disarm();
      n = 3;
      t.is(write(), 3, `${fault} at call ${calls}`);
    }
});

async function identities(): Promise<NodeIdentity[]> {
  const authority = await TestAuthority.create();
  return Promise.all(
    ['one', 'two', 'three'].map(async (nodeId) => {
      const { keyPem, certificatePem } = await authority.clientLeaf(nodeId);
      return {
        ...{
          nodeId,
          clusterId: 'c',
          nodeName: nodeId,
          serverUrl: 'https://console.example',
          serverName: 'console.example',
        },
        ...{ caSha256: authority.pin, keyPem, certificatePem, authorityPem: authority.pem },
      };
    }),
  );
}

test.serial('an enrollment that the disk refuses to write keeps the identity of before', async (t) => {
  const [one, two, three] = (await identities()) as [NodeIdentity, NodeIdentity, NodeIdentity];
  for (const fault of FAULTS)
    for (let calls = 0, came = true; came; calls++) {
      const failing = new FailingDisk(t);
      const { folder } = failing;
      saveIdentity(folder, one, new Date());
      failing.failAfter(calls, fault);
      const saved = await attempt(() => {
        saveIdentity(folder, two, new Date());
        return true;
      });
      came = failing.disarm();
      const found = idAfter(failing.crashed());
      if (saved) t.is(found, 'two');
      else if (readFileSync(join(folder, 'node.key'), 'utf8') === one.keyPem) {
        t.deepEqual([found, idAfter(folder)], ['one', 'one'], `call ${calls}`);
      } else {
        // Only some of the names could be changed: the node may ask to be enrolled again, and takes no mixture.
        t.true(['one', 'two', 'no identity'].includes(found), `${found}, call ${calls}`);
      }
      saveIdentity(folder, three, new Date());
      t.is(idAfter(failing.crashed()), 'three', `${fault} at call ${calls}`);
    }
});

test.serial('a renewal that fails at any call leaves a key and a certificate that fit', async (t) => {
  const [one] = (await identities()) as [NodeIdentity];
  const authority = await TestAuthority.create();
  const renewed = await authority.clientLeaf('one');
  for (const fault of FAULTS)
    for (let calls = 0, came = true; came; calls++) {
      const failing = new FailingDisk(t);
      const { folder } = failing;
      saveIdentity(folder, one, new Date());
      const renew = () => {
        saveNextKey(folder, renewed.keyPem);
        promoteNext(folder, renewed.certificatePem);
        return true;
      };
      failing.failAfter(calls, fault);
      const saved = await attempt(renew);
      came = failing.disarm();
      const certificate = () => loadIdentity(failing.crashed())?.certificatePem;
      t.true(
        certificate() === renewed.certificatePem || (!saved && certificate() === one.certificatePem),
        `call ${calls}`,
      );
      renew();
      t.is(certificate(), renewed.certificatePem, `${fault} at call ${calls}`);
    }
});

function idAfter(folder: string): string {
  try {
    return loadIdentity(folder)?.nodeId ?? 'no identity';
  } catch {
    return 'no identity';
  }
}
