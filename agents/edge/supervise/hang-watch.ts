// Replaces a process that lives and gives no sign of it any more: it is told to dump its goroutines, then killed, and its
// supervisor starts another. Time is counted in turns of this process's own event loop, so that a machine that stood still
// does not look like a child that did.
import type { Log } from '../../kit/log.ts';
import type { LifeLine } from './life-line.ts';
import { killGroup } from './managed-child.ts';

export interface HangWatchOptions {
  /** Signs may be missing for so long. */
  silenceSeconds: number;
  log: Log;
  /** Seconds after a replacement in which there is no other. */
  restSeconds?: number;
  /** Time for the dump. */
  dumpSeconds?: number;
  /** Length of what is called a second here, ms. */
  secondMs?: number;
  kill?: (pid: number, signal: NodeJS.Signals) => void;
}

const REST_SECONDS = 300;
const DUMP_SECONDS = 5;

export class HangWatch {
  private readonly options: Required<HangWatchOptions>;
  private timer: NodeJS.Timeout | undefined;
  private second = 0;
  private replacedAt = Number.NEGATIVE_INFINITY;
  /** The process that is watched now was told to die. */
  replacing = false;

  constructor(options: HangWatchOptions) {
    this.options = {
      restSeconds: REST_SECONDS,
      dumpSeconds: DUMP_SECONDS,
      secondMs: 1000,
      kill: killGroup,
      ...options,
    };
  }

  /** Watches a process until `stop`; one that never gave a sign is left alone. */
  start(pid: number, line: LifeLine): void {
    this.stop();
    this.replacing = false;
    let silent = 0;
    let seen = 0;
    this.timer = setInterval(() => {
      this.second++;
      silent = line.signs === seen ? silent + 1 : 0;
      seen = line.signs;
      if (this.replacing) this.finish(pid);
      else if (seen > 0 && silent >= this.options.silenceSeconds) this.replace(pid, silent);
    }, this.options.secondMs);
  }

  /** The process is gone. */
  stop(): void {
    clearInterval(this.timer);
    this.timer = undefined;
  }

  private replace(pid: number, silent: number): void {
    const { log, kill, restSeconds } = this.options;
    if (this.second - this.replacedAt < restSeconds) return;
    log.error('edge server runs but is unresponsive, supervisor replaces it', { pid, silentSeconds: silent });
    this.replacing = true;
    this.replacedAt = this.second;
    // Go prints the stack of every goroutine and ends; Caddy keeps SIGQUIT for itself. One that is stopped has to go on for it.
    kill(pid, 'SIGABRT');
    kill(pid, 'SIGCONT');
  }

  private finish(pid: number): void {
    if (this.second - this.replacedAt >= this.options.dumpSeconds) this.options.kill(pid, 'SIGKILL');
  }
}
