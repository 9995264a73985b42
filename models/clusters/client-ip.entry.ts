// Kind "client-ip": how the client address of a request is found. Without an entry the TCP peer is the client.
import { create, toBinary } from '@bufbuild/protobuf';
import { ClientIpMode, ClientIpSchema } from '../../proto/gen/svc/config/v1/cluster_pb.js';
import { singleClusterKind } from '../config/single-cluster-kind.ts';
import type { SettingColumn } from './cluster-settings.ts';

/** As saved in cluster.client_ip: the fields of the mode, normalised. */
export type ClientIp =
  | { mode: 'direct'; dropForwardedFor: boolean }
  | { mode: 'proxy_protocol' }
  /** Absent: trusted peers are believed how the client came. */
  | { mode: 'header'; trustedCidrs: string[]; header: string; trustForwardedProto?: false };

const DEFAULT_CLIENT_IP: ClientIp = { mode: 'direct', dropForwardedFor: false };

const MODES: Record<ClientIp['mode'], ClientIpMode> = {
  direct: ClientIpMode.DIRECT,
  proxy_protocol: ClientIpMode.PROXY_PROTOCOL,
  header: ClientIpMode.HEADER,
};

export const CLIENT_IP: SettingColumn<ClientIp> = {
  column: 'client_ip',
  read: (saved) => (saved as ClientIp | null) ?? DEFAULT_CLIENT_IP,
};

export const clientIpKind = singleClusterKind({
  kind: 'client-ip',
  setting: CLIENT_IP,
  compilerVersion: 1,
  compile(settings) {
    if (settings.mode === 'direct' && !settings.dropForwardedFor) return null;
    const { mode, ...fields } = settings;
    const ignoreForwardedProto = settings.mode === 'header' && settings.trustForwardedProto === false;
    return {
      body: toBinary(ClientIpSchema, create(ClientIpSchema, { ...fields, ignoreForwardedProto, mode: MODES[mode] })),
      features: ['client-ip-v1'],
      refs: [],
    };
  },
});
