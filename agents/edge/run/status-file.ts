// What `status` shows: a small file, replaced at most once a second and at least every five.
import { removeFile, writeFileAtomic } from '../../kit/files.ts';
import type { Log } from '../../kit/log.ts';

const PERIOD_MS = 5000;
const GAP_MS = 1000;

export class StatusFile {
  private readonly path: string;
  private readonly log: Log;
  private readonly describe: () => Record<string, unknown>;
  private timer: NodeJS.Timeout | undefined;
  private period: NodeJS.Timeout | undefined;
  private failing = false;

  constructor(path: string, log: Log, describe: () => Record<string, unknown>) {
    this.path = path;
    this.log = log;
    this.describe = describe;
  }

  start(): void {
    this.period = setInterval(() => this.write(), PERIOD_MS);
    this.write();
  }

  soon(): void {
    if (this.period) this.timer ??= setTimeout(() => this.write(), GAP_MS);
  }

  stop(): void {
    clearInterval(this.period);
    clearTimeout(this.timer);
    this.period = undefined;
    removeFile(this.path);
  }

  private write(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    try {
      const text = `${JSON.stringify({ updatedAt: new Date().toISOString(), ...this.describe() }, null, 2)}\n`;
      writeFileAtomic(this.path, text, 0o600, false);
      this.failing = false;
    } catch (error) {
      if (!this.failing) this.log.warn('status not written', { error });
      this.failing = true;
    }
  }
}
