// A disk that refuses one call, and what a crash of the machine would leave on it. After a sync that failed, what was written
// before it is gone for good, as with a kernel that dropped its pages: a later sync succeeds and brings none of it back.
import { fstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, statSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import type { ExecutionContext } from 'ava';
import { disk } from '../../../../agents/kit/disk.ts';
import { temporaryFolder } from './folder.ts';

/** `torn`: half of the bytes are written, then the call fails. */
export const FAULTS = ['EIO', 'ENOSPC', 'torn'] as const;

export type Fault = (typeof FAULTS)[number];

interface Content {
  durable: Buffer;
  /** What was done since the last sync. */
  pending: ((bytes: Buffer) => Buffer)[];
}

export class FailingDisk {
  readonly folder: string;
  /** Calls until the one that fails; undefined: none does. */
  private left: number | undefined;
  private fault: Fault = 'EIO';
  private readonly contents = new Map<number, Content>();
  /** Names that a crash leaves, by folder. */
  private readonly names = new Map<string, Map<string, Content>>();
  private readonly changed = new Set<string>();
  private readonly t: ExecutionContext;

  /** The test must run by itself: the disk is the one of the process. */
  constructor(t: ExecutionContext) {
    this.t = t;
    this.folder = temporaryFolder(t);
    const real = { ...disk };
    t.teardown(() => Object.assign(disk, real));
    const failing: typeof disk = {
      open: (path, flags, mode) => {
        this.step();
        const fd = real.open(path, flags, mode);
        if (String(flags).startsWith('wx'))
          this.contents.set(fstatSync(fd).ino, { durable: Buffer.alloc(0), pending: [] });
        this.changeNames(String(path));
        return fd;
      },
      write: (fd, bytes, from, length, position) => {
        const at = position ?? fstatSync(fd).size;
        const put = (count: number): number => {
          const written = Buffer.from(bytes.subarray(from, from + count));
          this.contentOf(fd).pending.push((before) => overwrite(before, written, at));
          return real.write(fd, bytes, from, count, position);
        };
        this.step(() => put(Math.floor(length / 2)));
        return put(length);
      },
      truncate: (fd, size) => {
        this.step();
        const length = size ?? 0;
        this.contentOf(fd).pending.push((before) => overwrite(before.subarray(0, length), Buffer.alloc(0), length));
        real.truncate(fd, size);
      },
      sync: (fd) => this.sync(fd, () => real.sync(fd)),
      // As late as that of a real one.
      syncSoon: async (fd) => {
        await new Promise((resolve) => setImmediate(resolve));
        this.sync(fd, () => undefined);
      },
      syncFolder: (fd) => {
        const path = readlinkSync(`/proc/self/fd/${fd}`);
        const isChanged = this.changed.delete(path);
        this.step();
        if (isChanged) this.names.set(path, this.namesIn(path));
      },
      rename: (from, to) => {
        this.step();
        real.rename(from, to);
        this.changeNames(String(to));
      },
      link: (from, to) => {
        this.step();
        real.link(from, to);
        this.changeNames(String(to));
      },
      unlink: (path) => {
        real.unlink(path);
        this.changeNames(String(path));
      },
    };
    Object.assign(disk, failing);
  }

  /** The call after `calls` more fails. */
  failAfter(calls: number, fault: Fault): void {
    this.left = calls;
    this.fault = fault;
  }

  /** Whether the call that was to fail came; none fails any more. */
  disarm(): boolean {
    const came = this.left === undefined;
    this.left = undefined;
    return came;
  }

  /** A folder with what a crash of the machine at this moment leaves. */
  crashed(): string {
    const after = temporaryFolder(this.t);
    for (const [path, names] of this.names) {
      const folder = join(after, relative(this.folder, path));
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      for (const [name, { durable }] of names) writeFileSync(join(folder, name), durable, { mode: 0o600 });
    }
    return after;
  }

  private step(half: () => unknown = () => undefined): void {
    if (this.left === undefined || this.left-- > 0) return;
    this.left = undefined;
    if (this.fault === 'torn') half();
    const code = this.fault === 'torn' ? 'EIO' : this.fault;
    throw Object.assign(new Error(`${code}: of the test`), { code });
  }

  private sync(fd: number, real: () => void): void {
    const content = this.contentOf(fd);
    const pending = content.pending.splice(0);
    this.step();
    real();
    for (const change of pending) content.durable = change(content.durable);
  }

  private contentOf(fd: number): Content {
    return this.known(fstatSync(fd).ino, () => readFileSync(`/proc/self/fd/${fd}`));
  }

  private known(ino: number, read: () => Buffer): Content {
    const known = this.contents.get(ino) ?? { durable: read(), pending: [] };
    this.contents.set(ino, known);
    return known;
  }

  private namesIn(path: string): Map<string, Content> {
    const files = readdirSync(path, { withFileTypes: true }).filter((entry) => entry.isFile());
    return new Map(
      files.map(({ name }) => {
        const file = join(path, name);
        return [name, this.known(statSync(file).ino, () => readFileSync(file))];
      }),
    );
  }

  private changeNames(path: string): void {
    this.changed.add(join(path, '..'));
  }
}

function overwrite(before: Buffer, bytes: Buffer, at: number): Buffer {
  const after = Buffer.alloc(Math.max(before.length, at + bytes.length));
  before.copy(after);
  bytes.copy(after, at);
  return after;
}
