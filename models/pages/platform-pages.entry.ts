// Kind "platform-pages": pages of hosts of no site and of disabled sites. Without an entry they are those of the node.
import { create, toBinary } from '@bufbuild/protobuf';
import { PlatformPagesSchema } from '../../proto/gen/svc/config/v1/pages_pb.js';
import type { EntryKind } from '../config/entry-kind.ts';
import { readPlatformPages } from './platform-pages.ts';
import { capabilitiesOfTemplates } from './template.ts';

export const PLATFORM_PAGES_KIND = 'platform-pages';

export const platformPagesKind: EntryKind = {
  kind: PLATFORM_PAGES_KIND,
  compilerVersion: 1,
  bypass: false,
  onRollback: 'current',
  // Two templates.
  maxBodyBytes: 192 * 1024,
  scope: 'platform',
  ownerOf: () => null,
  async compile(sql, _clusterId, ids) {
    if (!ids.includes('')) return new Map();
    const pages = await readPlatformPages(sql);
    const templates = Object.values(pages);
    if (templates.every((template) => template === '')) return new Map();
    const body = toBinary(PlatformPagesSchema, create(PlatformPagesSchema, pages));
    return new Map([['', { body, features: capabilitiesOfTemplates(templates), refs: [] }]]);
  },
  async *list() {
    yield [''];
  },
};
