// Why revisions were published: every reason code, with what it says in English.
import { REASON_LISTS } from './gen/reasons.ts';
import { merged } from './registered.ts';

export const REASONS: Readonly<Record<string, string>> = merged(REASON_LISTS);
