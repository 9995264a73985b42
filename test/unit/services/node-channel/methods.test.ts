// Who may call what of the node channel: the specification's table, literally.
import test from 'ava';
import { NodeService } from '../../../../proto/gen/svc/node/v1/node_pb.js';
import { declaredMethods, mayCall, PRINCIPALS, type Principal } from '../../../../services/node-channel/methods.ts';

const TABLE: Readonly<Record<string, readonly Principal[]>> = {
  Enroll: ['stranger'],
  RenewCertificate: ['node'],
  Watch: ['node'],
  Heartbeat: ['node'],
  Applied: ['node'],
  GetConfig: ['node'],
  GetBans: ['node'],
  ReportBans: ['node'],
  ReportLostBans: ['node'],
  ReportLogs: ['node'],
  ReportLogTail: ['node'],
  ReportStats: ['node'],
  GetChallengeKeys: ['node'],
  GetCertificates: ['node'],
  GetPrefetch: ['node'],
  GetPurgeSecret: ['node'],
  GetSessionTicketKeys: ['node'],
  GetAcmeTokens: ['node'],
  GetFeed: ['node'],
  ReportSecurity: ['node'],
  ReportVitals: ['node'],
  SubmitPurge: ['node'],
  TakeTasks: ['node'],
  ReportTasks: ['node'],
};

test('each method of the node channel is called by its principals and by no other', (t) => {
  const found = [...declaredMethods()].map(([path, method]) => [
    path.replace('/svc.node.v1.NodeService/', ''),
    PRINCIPALS.filter((principal) => mayCall(method, [principal])),
  ]);
  t.deepEqual(Object.fromEntries(found), TABLE);
});

test('a method that declares no callers, and a declaration of no method, fail at start', (t) => {
  const probes = { typeName: 'svc.node.v1.ProbeService', methods: [{ name: 'GetProbeTargets' }] };
  t.throws(() => declaredMethods([NodeService, probes]), {
    message: 'svc.node.v1.ProbeService/GetProbeTargets does not declare who may call it',
  });
  t.throws(() => declaredMethods([]), { message: /is declared and is no method/ });
});

test('a probe calls methods of probes only, a node those only while it probes', (t) => {
  const service = { typeName: 'p', methods: [{ name: 'GetProbeTargets' }, { name: 'ProbeHeartbeat' }] };
  const methods = declaredMethods([service], {
    'p/GetProbeTargets': { callers: ['probe', 'probing-node'], lane: 'control' },
    'p/ProbeHeartbeat': { callers: ['probe'], lane: 'control' },
  });
  const allowed = (...principals: Principal[]) =>
    [...methods.values(), ...declaredMethods().values()]
      .filter((method) => mayCall(method, principals))
      .map(({ name }) => name);
  t.deepEqual(allowed('probe'), ['GetProbeTargets', 'ProbeHeartbeat']);
  t.false(allowed('node').includes('GetProbeTargets'));
  t.deepEqual(
    allowed('node', 'probing-node').filter((name) => name.includes('Probe')),
    ['GetProbeTargets'],
  );
  t.deepEqual(allowed('stranger'), ['Enroll']);
});
