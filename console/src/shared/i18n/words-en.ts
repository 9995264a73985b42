// Words of every feature in this language, as one file for the browser.
import type { Words } from './words.ts';

const FILES = import.meta.glob<Words>('/src/features/*/words/en.json', { eager: true, import: 'default' });

export const words = Object.values(FILES);
