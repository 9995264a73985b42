// What the reader of live updates tells the tabs, and what they tell it.
import type { LiveEvent } from '@contract/resources/live.ts';

/** `off`: nobody is signed in, or the console takes no more streams; `connecting`: what happens now is told once it is back. */
export type LiveState = 'off' | 'connecting' | 'live';

export type LiveMessage =
  | { kind: 'state'; state: LiveState }
  /** `cursor`: where the stream was after them. */
  | { kind: 'events'; events: readonly LiveEvent[]; cursor: string }
  /** What happened is not known: everything that is shown has to be read again. */
  | { kind: 'reset'; cursor: string };

/** `hello`: tell me; also after a sign-in, when the stream may have ended. `bye`: the tab goes. */
export type TabMessage = 'hello' | 'bye';
