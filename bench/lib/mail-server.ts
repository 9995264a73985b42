// A real mail server (Exim) that keeps every mail it takes: STARTTLS on one port, TLS from the first byte on another, and one user.
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { demoAuthority } from '../../bin/lib/demo-authority.ts';
import { type Child, Processes } from '../../bin/lib/processes.ts';
import { freePort } from './servers.ts';

export interface MailServer {
  /** With STARTTLS, and with TLS from the first byte. */
  ports: { starttls: number; tls: number };
  user: string;
  password: string;
  /** PEM that vouches for it, for the name localhost. */
  ca: string;
  /** Mails that it took, with their headers, in no order. */
  mails(): string[];
  child: Child;
  stop(): Promise<void>;
}

const START_MS = 60_000;
const USER = 'alerts';
const PASSWORD = 'correct horse, battery: staple';

export async function startMailServer(): Promise<MailServer> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-mail-'));
  const spool = join(folder, 'spool');
  mkdirSync(spool, { mode: 0o777 });
  const now = new Date();
  const authority = await demoAuthority(join(folder, 'ca.pem'), join(folder, 'ca.key'), now);
  const { chainPem, privateKeyPem } = await authority.issue('localhost', now);
  const [certificate, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
  writeFileSync(certificate, chainPem);
  writeFileSync(key, privateKeyPem);
  const ports = { starttls: await freePort(), tls: await freePort() };
  const config = join(folder, 'exim.conf');
  writeFileSync(
    config,
    `primary_hostname = localhost
daemon_smtp_ports = ${ports.starttls} : ${ports.tls}
tls_on_connect_ports = ${ports.tls}
local_interfaces = <; 127.0.0.1
tls_advertise_hosts = *
tls_certificate = ${certificate}
tls_privatekey = ${key}
spool_directory = ${spool}
log_file_path = ${folder}/%slog
pid_file_path = ${folder}/exim.pid
queue_only = true
acl_smtp_rcpt = rcpt
exim_user = root
exim_group = root
begin acl
rcpt:
  accept authenticated = *
  deny message = sign in first
begin authenticators
plain:
  driver = plaintext
  public_name = PLAIN
  server_prompts = :
  server_advertise_condition = \${if def:tls_in_cipher}
  server_condition = \${if and {{eq{$auth2}{${USER}}}{eq{$auth3}{${PASSWORD}}}}}
  server_set_id = $auth2
`,
  );
  const processes = new Processes(join(folder, 'processes.json'));
  const child = processes.start({
    name: 'mail server',
    command: 'exim4',
    args: ['-bdf', '-C', config],
    env: { PATH: process.env.PATH },
    logFile: join(folder, 'output.log'),
  });
  const deadline = Date.now() + START_MS;
  while (!(await answers(ports.tls))) {
    if (Date.now() > deadline) throw new Error('no mail server listens');
    await sleep(20);
  }
  const mails = () => {
    const input = join(spool, 'input');
    const names = readdirSync(input).filter((name) => name.endsWith('-H'));
    return names.map((name) => {
      const [headers, body] = [name, name.replace(/-H$/, '-D')].map((one) => readFileSync(join(input, one), 'utf8'));
      return `${headers}\n${body}`;
    });
  };
  const stop = async () => {
    await processes.stopAll();
    rmSync(folder, { recursive: true, force: true });
  };
  return { ports, user: USER, password: PASSWORD, ca: readFileSync(authority.file, 'utf8'), mails, child, stop };
}

async function answers(port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect(port, '127.0.0.1');
  socket.once('connect', () => resolve(true));
  socket.once('error', () => resolve(false));
  return promise.finally(() => socket.destroy());
}
