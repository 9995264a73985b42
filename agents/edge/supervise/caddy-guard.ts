// Looks after Caddy's processes: one that gives no sign of life is replaced, and a journal that kills whoever reads it is set
// aside for the one before its last rewrite.
//
//   death                                          counts against
//   while a journal is read                        that journal; the second in a row sets it aside
//   out of memory, killed from outside, replaced   nothing: another journal would not help
//   later, such as at an address in use            nothing: the journals were read
import { sleep } from '../../kit/backoff.ts';
import { setJournalAside } from '../../kit/journal-before.ts';
import { errorText, type Log } from '../../kit/log.ts';
import { HangWatch } from './hang-watch.ts';
import type { LifeLine } from './life-line.ts';
import type { ChildEnd, ChildGuard } from './managed-child.ts';

const DEATHS = 2;
const LAST_WORDS_MS = 2000;
const FROM_OUTSIDE: ReadonlySet<string> = new Set(['SIGKILL', 'SIGTERM', 'SIGINT']);

type JournalName = 'config' | 'bans';

export interface CaddyGuardOptions {
  /** Paths of the journals. */
  journals: Record<JournalName, string>;
  /** Runs `work` while there is no agent, which is the one that writes the journals. */
  withoutAgent: (work: () => void) => Promise<void>;
  /** Signs of life may be missing for so long. */
  silenceSeconds: number;
  log: Log;
  hangWatch?: HangWatch;
}

export class CaddyGuard implements ChildGuard {
  private readonly options: CaddyGuardOptions;
  private readonly log: Log;
  private readonly hangs: HangWatch;
  private readonly deaths: Record<JournalName, number> = { config: 0, bans: 0 };
  private line: LifeLine | undefined;

  constructor(options: CaddyGuardOptions) {
    this.options = options;
    this.log = options.log;
    const { silenceSeconds, log } = options;
    this.hangs = options.hangWatch ?? new HangWatch({ silenceSeconds, log });
  }

  started(pid: number, line: LifeLine): void {
    this.line = line;
    this.hangs.start(pid, line);
  }

  gone(): void {
    this.hangs.stop();
  }

  async ended(end: ChildEnd): Promise<void> {
    const { line } = this;
    this.line = undefined;
    if (!line) return;
    // The last words may still be under way; somebody else may hold the line open.
    await Promise.race([line.closed, sleep(LAST_WORDS_MS)]);
    if (line.step === 'ready') this.deaths.config = this.deaths.bans = 0;
    const journal = this.killer(line, end);
    if (!journal) return;
    this.deaths[journal]++;
    this.log.error('edge server crashed while reading a journal', { journal, deaths: this.deaths[journal] });
    if (this.deaths[journal] >= DEATHS) await this.setAside(journal);
  }

  /** The journal that a process died of. */
  private killer(line: LifeLine, end: ChildEnd): JournalName | undefined {
    if (this.hangs.replacing || line.ranOutOfMemory || FROM_OUTSIDE.has(end.signal ?? '')) return undefined;
    if (line.step === 'reading config') return 'config';
    return line.step === 'reading bans' ? 'bans' : undefined;
  }

  private async setAside(journal: JournalName): Promise<void> {
    this.deaths[journal] = 0;
    const path = this.options.journals[journal];
    try {
      await this.options.withoutAgent(() => {
        const { aside, hadBefore } = setJournalAside(path);
        this.log.error('journal set aside', {
          path,
          aside,
          instead: hadBefore ? 'the one before its last rewrite' : 'none, the agent fetches everything again',
        });
      });
    } catch (error) {
      this.log.error('journal cannot be set aside', { path, reason: errorText(error) });
    }
  }
}
