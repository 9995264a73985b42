// A model of what lies on both sides of the spool: a data plane whose batches are immutable, a disk on which the process can
// end between any two steps, and a console that keeps the rules of numbers.
import { create } from '@bufbuild/protobuf';
import { drainToSpool } from '../../../../../agents/edge/stats/drain.ts';
import { type Outgoing, Spool } from '../../../../../agents/edge/stats/spool.ts';
import type { SpoolFiles } from '../../../../../agents/edge/stats/spool-files.ts';
import { createLog } from '../../../../../agents/kit/log.ts';
import type { DrainStatsResponse } from '../../../../../proto/gen/svc/edge/v1/edge_pb.js';
import { DrainStatsResponseSchema } from '../../../../../proto/gen/svc/edge/v1/edge_pb.js';
import { type SiteMinute, SiteMinuteSchema } from '../../../../../proto/gen/svc/node/v1/node_pb.js';

export class Killed extends Error {}

/** Files in memory. `killIn` counts the changes until the process ends, before or after the change is made. */
export class ModelFiles implements SpoolFiles {
  readonly content = new Map<string, Uint8Array>();
  killIn: { steps: number; after: boolean } | undefined;
  list = (): string[] => [...this.content.keys()];
  size = (name: string): number => this.content.get(name)!.length;
  read(name: string): Uint8Array {
    const bytes = this.content.get(name);
    if (!bytes) throw Object.assign(new Error('no such file'), { code: 'ENOENT' });
    return bytes;
  }
  write(name: string, data: Uint8Array | string): void {
    this.change(() => this.content.set(name, Buffer.from(data)));
  }
  remove(name: string): void {
    this.change(() => this.content.delete(name));
  }
  private change(make: () => void): void {
    const { killIn } = this;
    if (killIn && killIn.steps-- === 0) {
      this.killIn = undefined;
      if (killIn.after) make();
      throw new Killed();
    }
    make();
  }
}

/** Each row counts one request; its number stands in the site's name. */
export class ModelDataPlane {
  private pending: SiteMinute[] = [];
  private batch: DrainStatsResponse | undefined;
  private sequence = 0n;
  counted: { id: string; minute: number }[] = [];

  count(minute: number, rows: number): void {
    for (let row = 0; row < rows; row++) {
      const id = `s${this.counted.length}`;
      this.counted.push({ id, minute });
      this.pending.push(create(SiteMinuteSchema, { siteId: id, minute: BigInt(minute), requests: 1n }));
    }
  }

  /** Its folder was lost, or put back: what it handed out is not there any more. */
  forget(): void {
    this.batch = undefined;
  }

  async drainStats(acknowledged: bigint): Promise<DrainStatsResponse> {
    if (this.batch && acknowledged >= this.batch.sequence) this.batch = undefined;
    if (!this.batch && this.pending.length > 0) {
      this.batch = create(DrainStatsResponseSchema, { sequence: ++this.sequence, minutes: this.pending });
      this.pending = [];
    }
    return this.batch ?? create(DrainStatsResponseSchema, {});
  }
}

export class ModelConsole {
  cursor = 0n;
  watermark = 0;
  stored: string[] = [];
  gaps: [number, number][] = [];
  /** Numbers that were passed over because the node does not have them any more. */
  skipped: [bigint, bigint][] = [];

  report(batch: Outgoing): bigint {
    const { sequence, firstHeld, completeUntil } = batch;
    if (sequence <= this.cursor) return this.cursor;
    if (sequence > this.cursor + 1n && firstHeld < sequence) return this.cursor;
    if (sequence > this.cursor + 1n) this.skipped.push([this.cursor, sequence]);
    this.cursor = sequence;
    this.stored.push(...batch.minutes.map(({ siteId }) => siteId));
    this.gaps.push(...batch.gaps.map(({ from, to }): [number, number] => [Number(from), Number(to)]));
    if (completeUntil > 0n) this.watermark = Number(completeUntil);
    return this.cursor;
  }

  /** A copy to come back to. */
  backup(): ModelConsole {
    return Object.assign(new ModelConsole(), structuredClone({ ...this }));
  }
}

export const NOW = Math.floor(Date.now() / 60_000) * 60;
export const quiet = createLog('error', {}, () => undefined);

export function openSpool(
  files: SpoolFiles,
  limits: { maxBytes?: number; maxFiles?: number } = {},
  now = () => NOW,
): Spool {
  return new Spool({ files, log: quiet, now, ...limits });
}

export function drain(spool: Spool, dataPlane: ModelDataPlane): Promise<void> {
  return drainToSpool({ client: dataPlane, spool, offsetMs: () => 0, log: quiet });
}

/** Sends up to `batches`; the answer of the last one is lost where `loseAnswer` says so. Answers whether anything was refused. */
export function send(spool: Spool, target: ModelConsole, batches = 10_000, loseAnswer = false): boolean {
  if (spool.unconfirmed) spool.confirm(target.cursor);
  for (let sent = 1; sent <= batches; sent++) {
    const next = spool.next();
    if (!next) return false;
    const answer = target.report(next.batch);
    if (loseAnswer && sent === batches) return false;
    if (!spool.acknowledge(next.batch.sequence, answer)) return true;
  }
  return false;
}
