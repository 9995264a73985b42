import test from 'ava';
import { sessionCookie } from '../../../../services/api-gateway/cookies.ts';

const TOKEN = 'A'.repeat(43);
const plain = sessionCookie({ publicUrl: 'http://localhost:3000', instanceId: 'deadbeef' });
const secure = sessionCookie({ publicUrl: 'https://console.example.com', instanceId: 'deadbeef' });

test('the cookie is HttpOnly, SameSite=Lax, for the whole site, and Secure with https', (t) => {
  t.is(plain.set(TOKEN, true), `svc_session_deadbeef=${TOKEN}; Path=/; HttpOnly; SameSite=Lax; Max-Age=604800`);
  t.is(
    secure.set(TOKEN, true),
    `__Host-svc_session_deadbeef=${TOKEN}; Path=/; HttpOnly; SameSite=Lax; Secure; Max-Age=604800`,
  );
  t.false(plain.set(TOKEN, false).includes('Max-Age'));
  t.true(plain.clear().endsWith('Max-Age=0'));
});

test('it is found among others', (t) => {
  t.is(plain.read(`a=1; svc_session_deadbeef=${TOKEN};b=2`), TOKEN);
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
    t.is(plain.read(header), null);
  });
}
