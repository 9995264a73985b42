export {
  type ProtocolAnswer,
  ProtocolClient,
  type ProtocolRequest,
  type Version,
} from '../../bin/lib/protocol-client.ts';
