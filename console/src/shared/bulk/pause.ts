const PAUSE_MS = 400;

/** Between tries at a busy console. */
export const PAUSE = (attempt: number): Promise<void> => new Promise((done) => setTimeout(done, PAUSE_MS * attempt));
