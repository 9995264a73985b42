// What a page of the Web UI may run, as its headers and its text say it.
import test from 'ava';
import { startBrowsedConsole } from '../helpers/console-pages.ts';

test.serial('pages run our own scripts only, and no text can become one', async (t) => {
  const console = await startBrowsedConsole();
  t.teardown(() => console.stop());
  const page = await fetch(`${console.url}/sites`);
  const policy = page.headers.get('content-security-policy') ?? '';
  for (const part of [
    "script-src 'self';",
    "style-src 'self';",
    "require-trusted-types-for 'script'",
    "frame-ancestors 'none'",
  ])
    t.true(policy.includes(part), part);
  t.notRegex(policy, /unsafe|https?:/);
  const html = await page.text();
  t.notRegex(html, /<script>|<script [^>]*>[^<]|<style|\sstyle=|\son[a-z]+=/);
  t.is(page.headers.get('cache-control'), 'no-store');
  const [, script] = /src="(\/assets\/[^"]+)"/.exec(html)!;
  const asset = await fetch(console.url + script);
  t.is(asset.headers.get('cache-control'), 'public, max-age=31536000, immutable');
  const missing = await fetch(`${console.url}/assets/gone-12345678.js`);
  t.deepEqual([missing.status, missing.headers.get('cache-control')], [404, 'no-store']);
});
