// Kind "origin-policy": the special-purpose ranges that origins may be in all the same, on every cluster.
import { create, toBinary } from '@bufbuild/protobuf';
import { OriginPolicySchema } from '../../proto/gen/svc/config/v1/cluster_pb.js';
import type { EntryKind } from '../config/entry-kind.ts';
import { readOriginAllowList } from './origin-allow-list.ts';

export const originPolicyKind: EntryKind = {
  kind: 'origin-policy',
  compilerVersion: 1,
  bypass: false,
  onRollback: 'current',
  scope: 'platform',
  ownerOf: () => null,
  async compile(sql, _clusterId, ids) {
    const allowedCidrs = ids.includes('') ? await readOriginAllowList(sql) : [];
    if (allowedCidrs.length === 0) return new Map();
    const body = toBinary(OriginPolicySchema, create(OriginPolicySchema, { allowedCidrs }));
    return new Map([['', { body, features: [], refs: [] }]]);
  },
  async *list() {
    yield [''];
  },
};
