// What visitors get of error pages and maintenance: saved by API, served by a real edge in front of a real origin.
import test from 'ava';
import type { TestConsole } from '../helpers/console.ts';
import { eventually } from '../helpers/eventually.ts';
import { startLocalEdge, startLocalOrigin, startNodeConsole } from '../helpers/local-edge.ts';
import { Api } from '../helpers/resources.ts';

let running: TestConsole;

test.before('start', async () => {
  running = await startNodeConsole();
});
test.after.always('stop', () => running?.stop());

const HOST = 'pages.example';

test('visitors get the pages of the site, of all clusters, and of its maintenance', async (t) => {
  const api = new Api(running);
  const clusterId = await api.cluster('pages');
  const { address, port } = await startLocalOrigin(t, api, (request, response) => {
    response.statusCode = request.url === '/' || request.url === '/status' ? 200 : 404;
    response.end(`origin ${response.statusCode}`);
  });
  const { ask } = await startLocalEdge(t, running, clusterId);
  const { id } = await api.site(clusterId, HOST, { origins: [{ address, port }] });
  const disabled = await api.site(clusterId, 'disabled.example', { origins: [{ address, port }] });
  await api.ok('PUT', `/sites/${disabled.id}/enabled`, { enabled: false });
  const gets = (path: string, status: number, text: string, host = HOST) =>
    eventually(
      async () => {
        const response = await ask(host, path);
        return response.status === status && response.body.includes(text) && response;
      },
      { what: `${status} with "${text}" for ${host}${path}` },
    );
  await gets('/', 200, 'origin 200');
  await gets('/gone', 404, 'origin 404');

  const template = '<h1>{{status}}: no {{path}} here</h1>';
  await api.ok('PUT', `/sites/${id}/error-pages`, { pages: [{ status: '4xx', template }] });
  await gets('/', 404, 'Unknown website', 'stranger.example');
  await gets('/', 503, 'Website disabled', 'disabled.example');
  const [unknownHost, siteDisabled] = ['<h1>No website of this name</h1>', '<h1>Closed</h1>'];
  await api.ok('PUT', '/settings/error-pages', { unknownHost, siteDisabled });
  await gets('/', 404, unknownHost, 'stranger.example');
  await gets('/', 503, siteDisabled, 'disabled.example');
  await api.ok('PUT', '/settings/error-pages', { unknownHost: '' });
  await gets('/', 404, 'Unknown website', 'stranger.example');
  // Nodes have the page of the site by now.
  t.is((await ask(HOST, '/gone')).body, 'origin 404');

  await api.ok('PUT', `/sites/${id}/error-pages`, {
    pages: [{ status: '4xx', template }],
    interceptOriginErrors: true,
  });
  const page = await gets('/gone%3Cb%3E', 404, '404: no /gone');
  t.true(page.body.includes('&lt;b&gt;') && !page.body.includes('<b>'), page.body);
  t.regex(String(page.headers['content-security-policy']), /default-src 'none'/);
  const exact = { status: 404, redirectUrl: '/?was={{status}}' };
  await api.ok('PUT', `/sites/${id}/error-pages`, {
    pages: [exact, { status: '4xx', template }],
    interceptOriginErrors: true,
  });
  t.is((await gets('/gone', 302, '')).headers.location, '/?was=404');

  const maintenance = { template: '<h1>Back at noon</h1>', retryAfterSeconds: 600, allowedPathPrefixes: ['/status'] };
  await api.ok('PUT', `/sites/${id}/maintenance`, { enabled: true, ...maintenance });
  const closed = await gets('/', 503, 'Back at noon');
  t.is(closed.headers['retry-after'], '600');
  t.is(closed.headers['x-svc-error'], 'maintenance');
  await gets('/status', 200, 'origin 200');
  await gets('/status/../', 503, 'Back at noon');
  await api.ok('PUT', `/sites/${id}/maintenance`, { enabled: true, allowedCidrs: ['127.0.0.1'] });
  await gets('/', 200, 'origin 200');
  await api.ok('PUT', `/sites/${id}/maintenance`, { enabled: true });
  await gets('/', 503, 'Down for maintenance');
  await api.ok('PUT', `/sites/${id}/maintenance`, { enabled: false });
  await gets('/', 200, 'origin 200');
});
