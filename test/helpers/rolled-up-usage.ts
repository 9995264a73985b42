// Usage as the job of each minute leaves it, made now.
import { rollUpUsage } from '../../services/usage/roll-up.ts';
import type { TestConsole } from './console.ts';

export const rolledUpUsage = ({ running }: TestConsole): Promise<void> => rollUpUsage(running.runtime);
