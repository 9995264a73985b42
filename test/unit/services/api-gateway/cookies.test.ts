import test from 'ava';
import { createCookies } from '../../../../services/api-gateway/cookies.ts';

const TOKEN = 'A'.repeat(43);
const plain = createCookies({ publicUrl: 'http://localhost:3000', instanceId: 'deadbeef' });
const secure = createCookies({ publicUrl: 'https://console.example.com', instanceId: 'deadbeef' });

for (const [name, text, seconds] of [
  ['session', 'svc_session', 604_800],
  ['secondStep', 'svc_second_step', 600],
  ['trustedDevice', 'svc_trusted_device', 2_592_000],
] as const) {
  test(`the ${name} cookie is HttpOnly, SameSite=Lax, for the whole site, and Secure with https`, (t) => {
    const lasting = { token: TOKEN, lasting: true };
    const attributes = 'Path=/; HttpOnly; SameSite=Lax';
    t.is(plain.change(name, lasting), `${text}_deadbeef=${TOKEN}; ${attributes}; Max-Age=${seconds}`);
    t.is(secure.change(name, lasting), `__Host-${text}_deadbeef=${TOKEN}; ${attributes}; Secure; Max-Age=${seconds}`);
    t.is(plain.change(name, { token: TOKEN, lasting: false }), `${text}_deadbeef=${TOKEN}; ${attributes}`);
    t.is(plain.change(name, 'end'), `${text}_deadbeef=; ${attributes}; Max-Age=0`);
    t.is(plain.read(`a=1; ${text}_deadbeef=${TOKEN};b=2`, name), TOKEN);
  });
}

test('each is found by its own name', (t) => {
  const header = `svc_trusted_device_deadbeef=${TOKEN}; svc_session_deadbeef=${'B'.repeat(43)}`;
  t.deepEqual(plain.readAll(header), { session: 'B'.repeat(43), secondStep: null, trustedDevice: TOKEN });
});

test('a cookie is taken away only from who has it', (t) => {
  const ends = { session: 'end', secondStep: 'end' } as const;
  t.deepEqual(plain.changes(`svc_second_step_deadbeef=old`, ends), [plain.change('secondStep', 'end')]);
  t.deepEqual(plain.changes(undefined, ends), []);
  t.deepEqual(plain.changes(undefined, undefined), []);
});

for (const header of [
  undefined,
  '',
  'a=1',
  'svc_session_deadbeef=',
  `svc_session_00000000=${TOKEN}`,
  `svc_session_deadbeef=${TOKEN}; svc_session_deadbeef=${'B'.repeat(43)}`,
  `svc_session_deadbeef=${TOKEN}x`,
  `xsvc_session_deadbeef=${TOKEN}`,
  'svc_session_deadbeef=%41',
]) {
  test(`${JSON.stringify(header)?.replaceAll(TOKEN, 'TOKEN')} brings no session`, (t) => {
    t.is(plain.read(header, 'session'), null);
  });
}
