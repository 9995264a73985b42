// Version of the agent: the one of the package it is part of. From source and from a node package alike, its package.json
// lies two folders up.
import { readFileSync } from 'node:fs';

export const AGENT_VERSION: string = (
  JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string }
).version;
