// The alternative: the same sites with all rows in the browser, which filters them itself. A plain page without any
// framework or frame, from a server that does nothing else: as fast as that way can be.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';

const PAGE = `<!doctype html><title>All rows</title>
<input type="search" aria-label="Search"><table><tbody></tbody></table>
<script>
const body = document.querySelector('tbody');
let sites = [];
const draw = (text) => {
  const shown = sites.filter(({ name, domains }) => name.toLowerCase().includes(text) || domains.some((d) => d.includes(text)));
  const rows = shown.map((site) => {
    const row = document.createElement('tr');
    for (const cell of [site.name, site.domains.join(', '), site.delivery.state, site.clusterName, String(site.origins.length)]) {
      row.insertCell().textContent = cell;
    }
    return row;
  });
  body.replaceChildren(...rows);
};
document.querySelector('input').addEventListener('input', ({ target }) => draw(target.value.trim().toLowerCase()));
fetch('/sites.json').then((answer) => answer.json()).then((all) => { sites = all; draw(''); });
</script>`;

export interface AllRowsPage {
  url: string;
  close(): void;
}

export async function serveAllRows(sites: readonly unknown[]): Promise<AllRowsPage> {
  const json = gzipSync(JSON.stringify(sites));
  const server = createServer((request, response) => {
    if (request.url === '/sites.json') {
      response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' }).end(json);
    } else response.writeHead(200, { 'content-type': 'text/html' }).end(PAGE);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://localhost:${port}/all`,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
