// Programs of others that know what HTTP/2 and TLS have to be, against a real edge: h2spec and sslyze.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { run } from '../../bin/lib/commands.ts';
import { buildGoTools } from '../../bin/lib/go-tools.ts';
import { ensurePythonTool } from '../helpers/python-tool.ts';
import { startTlsEdge, type TlsEdge } from '../helpers/tls-edge.ts';

const SCAN_MS = 5 * 60_000;
const INSTALL_MS = 20 * 60_000;

let edge: TlsEdge;
const reports = mkdtempSync(join(tmpdir(), 'scanners-'));

test.before('start an edge', async () => {
  edge = await startTlsEdge();
});

test.after.always('stop it', async () => {
  await edge?.stop();
  rmSync(reports, { recursive: true, force: true });
});

/** Cases of h2spec that the edge does not pass, each with why. */
const FAILING: Record<string, string> = {
  'http2/8.1.2.2: Sends a HEADERS frame that contains the connection-specific header field':
    'refused with a 400 that ends the stream, where a reset is asked for; nothing of it reaches an origin',
  'http2/8.1.2.2: Sends a HEADERS frame that contains the TE header field with any value other than "trailers"':
    'refused with a 400, as above',
};

test('h2spec: all of HTTP/2 but for what is explained here', async (t) => {
  t.timeout(INSTALL_MS);
  const h2spec = join(await buildGoTools('h2spec'), 'h2spec');
  const file = join(reports, 'h2spec.xml');
  const where = ['--host', edge.modern, '--port', String(edge.port), '--tls', '--insecure'];
  // It ends with an error when a case fails. Strict has one case more; a case that is slow here waits longer than it would.
  const args = [...where, '--strict', '--timeout', '10', '--junit-report', file];
  await run(h2spec, args, { timeout: SCAN_MS, maxBuffer: 1 << 24 }).catch(() => undefined);
  const report = readFileSync(file, 'utf8');
  const cases = [
    ...report.matchAll(/<testcase package="([^"]*)" classname="([^"]*)"[^>]*>([\s\S]*?)<\/testcase>/g),
  ].map(([, where, name, inside]) => ({
    name: `${where}: ${name!.replaceAll('&#34;', '"').replaceAll('&quot;', '"').replaceAll('&#39;', "'")}`,
    failed: inside!.trim() !== '',
  }));
  t.is(cases.length, 146);
  const failed = cases.filter(({ failed }) => failed).map(({ name }) => name);
  t.deepEqual(failed.sort(), Object.keys(FAILING).sort());
});

interface Suites {
  accepted_cipher_suites: { cipher_suite: { name: string } }[];
}

interface Deployment {
  ocsp_response: { certificate_status?: string; response_status?: string } | null;
}

interface Scan {
  [name: string]: { status: string; result: Record<string, unknown> | null };
}

async function scan(host: string): Promise<Scan> {
  const sslyze = join(await ensurePythonTool('sslyze'), 'sslyze');
  const file = join(reports, `${host}.json`);
  const checks = ['sslv2', 'sslv3', 'tlsv1', 'tlsv1_1', 'tlsv1_2', 'tlsv1_3', 'certinfo', 'compression', 'reneg']
    .concat('heartbleed', 'openssl_ccs', 'robot', 'fallback', 'early_data', 'ems')
    .map((name) => `--${name}`);
  const target = ['--sni', host, `localhost:${edge.port}`];
  const args = [
    ...checks,
    '--slow_connection',
    '--mozilla_config',
    'disable',
    '--quiet',
    '--json_out',
    file,
    ...target,
  ];
  await run(sslyze, args, { timeout: SCAN_MS, maxBuffer: 1 << 24 });
  const { server_scan_results } = JSON.parse(readFileSync(file, 'utf8')) as {
    server_scan_results: { scan_result: Scan }[];
  };
  return server_scan_results[0]!.scan_result;
}

const FORWARD_SECRET = [
  'TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256',
  'TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256',
] as const;
const TLS_1_3 = ['TLS_AES_128_GCM_SHA256', 'TLS_AES_256_GCM_SHA384', 'TLS_CHACHA20_POLY1305_SHA256'];

test('sslyze: nothing old, nothing weak, no known hole in either profile', async (t) => {
  t.timeout(INSTALL_MS);
  for (const [host, tls12] of [
    [edge.modern, [...FORWARD_SECRET]],
    [edge.compatible, [...FORWARD_SECRET, 'TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384']],
  ] as const) {
    const found = await scan(host);
    const of = (name: string) => {
      t.is(found[name]?.status, 'COMPLETED', `${host}: ${name}`);
      return found[name]!.result!;
    };
    const suites = (name: string) =>
      (of(name) as unknown as Suites).accepted_cipher_suites.map(({ cipher_suite }) => cipher_suite.name).sort();
    for (const old of ['ssl_2_0', 'ssl_3_0', 'tls_1_0', 'tls_1_1'])
      t.deepEqual(suites(`${old}_cipher_suites`), [], `${host}: ${old}`);
    t.deepEqual(suites('tls_1_2_cipher_suites'), [...tls12].sort());
    t.deepEqual(suites('tls_1_3_cipher_suites'), TLS_1_3);
    t.false(of('tls_compression').supports_compression);
    t.false(of('tls_1_3_early_data').supports_early_data);
    t.true(of('tls_fallback_scsv').supports_fallback_scsv);
    t.true(of('tls_extended_master_secret').supports_ems_extension);
    t.false(of('heartbleed').is_vulnerable_to_heartbleed);
    t.false(of('openssl_ccs_injection').is_vulnerable_to_ccs_injection);
    t.is(of('robot').robot_result, 'NOT_VULNERABLE_RSA_NOT_SUPPORTED');
    const { is_vulnerable_to_client_renegotiation_dos, client_renegotiations_success_count } =
      of('session_renegotiation');
    t.false(is_vulnerable_to_client_renegotiation_dos);
    t.is(client_renegotiations_success_count, 0);
    const [deployment] = of('certificate_info').certificate_deployments as Deployment[];
    t.is(deployment?.ocsp_response?.certificate_status ?? 'none', host === edge.modern ? 'GOOD' : 'none');
  }
});
