// Kind "header-limit": how large the header of a request may be. Without an entry a field may have 8 KiB.
import { create, toBinary } from '@bufbuild/protobuf';
import { DEFAULT_FIELD_BYTES } from '../../contract/resources/header-limit.ts';
import { HeaderLimitSchema } from '../../proto/gen/svc/config/v1/cluster_pb.js';
import { singleClusterKind } from '../config/single-cluster-kind.ts';
import type { SettingColumn } from './cluster-settings.ts';

/** As saved in cluster.header_limit. */
export interface HeaderLimit {
  /** Bytes. */
  fieldBytes: number;
}

export const HEADER_LIMIT: SettingColumn<HeaderLimit> = {
  column: 'header_limit',
  read: (saved) => (saved as HeaderLimit | null) ?? { fieldBytes: DEFAULT_FIELD_BYTES },
};

export const headerLimitKind = singleClusterKind({
  kind: 'header-limit',
  setting: HEADER_LIMIT,
  compilerVersion: 1,
  compile({ fieldBytes }) {
    if (fieldBytes === DEFAULT_FIELD_BYTES) return null;
    return {
      body: toBinary(HeaderLimitSchema, create(HeaderLimitSchema, { fieldBytes })),
      features: ['header-limit-v1'],
      refs: [],
    };
  },
});
