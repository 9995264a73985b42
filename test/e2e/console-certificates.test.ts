// Certificates in the Web UI: uploaded, chosen for a site, replaced, and kept while somebody uses them; what the list and the
// site say of one that ended or failed.
import test from 'ava';
import type { Locator, Page } from 'playwright-core';
import { accessibilityFaults, layoutFaults, screenshot, settled, type VisitOptions } from '../helpers/console-pages.ts';
import { ConsoleStories, saveButton } from '../helpers/console-stories.ts';
import { eventually } from '../helpers/eventually.ts';
import { Api } from '../helpers/resources.ts';
import { testAuthority, testCertificate } from '../helpers/site-certificates.ts';

const stories = new ConsoleStories(2);

let api: Api;

test.before(async () => {
  await stories.start();
  api = new Api(stories.console);
});
test.after.always(() => stories.stop());

test.serial('a certificate is pasted, chosen for a site, and not deleted while the site uses it', async (t) => {
  const site = await stories.newSite();
  const certificate = await testCertificate(site.domains);
  const other = await testCertificate(site.domains);
  const visitor = await stories.operatorVisit('/certificates');
  const { page } = visitor;
  await page.getByRole('button', { name: 'Upload a certificate', exact: true }).first().click();
  const dialog = page.getByRole('dialog', { name: 'Upload a certificate' });
  await dialog.getByLabel('Name', { exact: true }).fill('shop');
  await dialog.getByLabel('Certificate chain (PEM)', { exact: true }).fill(certificate.chainPem);
  await dialog.getByLabel('Private key (PEM)', { exact: true }).fill(other.privateKeyPem);
  await dialog.getByRole('button', { name: 'Upload', exact: true }).click();
  await dialog.getByText('The private key does not match the certificate.').waitFor();
  await dialog.getByLabel('Private key (PEM)', { exact: true }).fill(certificate.privateKeyPem);
  await dialog.getByRole('button', { name: 'Upload', exact: true }).click();
  await page.getByRole('heading', { name: 'shop', level: 1 }).waitFor();
  await page.getByText('No site uses this certificate.').waitFor();
  t.false((await page.content()).includes('PRIVATE KEY'));

  await page.goto(`/sites/${site.id}/https`);
  await page.getByText('This site is served over HTTP only.').waitFor();
  await page.getByRole('combobox', { name: 'Certificate of the site', exact: true }).click();
  await page.getByRole('option', { name: 'shop', exact: true }).click();
  await page.getByRole('link', { name: 'Redirect and HSTS', exact: true }).click();
  await page.getByRole('switch', { name: 'Redirect to HTTPS', exact: true }).press('Space');
  await saveButton(page).click();
  await page.getByText('HTTPS with shop, valid until').waitFor();
  const saved = await eventually(async () => {
    const { settings } = await stories.console.client.api<{ settings: { forceHttps: boolean } }>(
      'GET',
      `/sites/${site.id}/https`,
    );
    return settings.forceHttps;
  });
  t.true(saved);

  await page.getByRole('link', { name: 'Open the certificate' }).click();
  await page.getByRole('heading', { name: 'Sites that use it' }).waitFor();
  await page.getByRole('link', { name: site.name, exact: true }).waitFor();
  await page.getByRole('button', { name: 'Delete', exact: true }).click();
  await page.getByText('1 site uses this certificate. Choose another certificate for it first.').waitFor();
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial(
  'an upload from a site ends with its use there; a DNS credential is added where one is asked for',
  async (t) => {
    const site = await stories.newSite();
    const certificate = await testCertificate(site.domains);
    const visitor = await stories.operatorVisit(`/sites/${site.id}/https`);
    const { page } = visitor;
    // Lower than the dialog: its fields scroll, its buttons stay.
    await page.setViewportSize({ width: 1280, height: 420 });
    await page.getByRole('button', { name: 'Upload a certificate', exact: true }).click();
    const dialog = page.getByRole('dialog', { name: 'Upload a certificate' });
    const upload = dialog.getByRole('button', { name: 'Upload', exact: true });
    await settled(page);
    const box = await upload.boundingBox();
    t.true(box !== null && box.y + box.height <= 420, 'the button is in sight');
    await dialog.getByLabel('Name', { exact: true }).fill('from the site');
    await dialog.getByLabel(CHAIN, { exact: true }).fill(certificate.chainPem);
    await dialog.getByLabel(KEY, { exact: true }).fill(certificate.privateKeyPem);
    await upload.click();
    await page.getByRole('button', { name: 'Use for this site', exact: true }).click();
    await page.getByText(/^HTTPS with from the site, valid until .* days left\)\./).waitFor();
    await page.getByText(`Domains covered: ${site.domains[0]}`).waitFor();

    await page.setViewportSize({ width: 1440, height: 900 });
    await page.getByRole('button', { name: 'Get a certificate', exact: true }).click();
    const request = page.getByRole('dialog', { name: 'HTTPS for this site' });
    await request.getByRole('combobox', { name: 'Validation', exact: true }).press('Enter');
    await page.getByRole('option', { name: 'DNS-01, by a DNS record', exact: true }).click();
    await request.getByRole('button', { name: 'Add a DNS credential', exact: true }).click();
    const adding = page.getByRole('dialog', { name: 'Add a DNS credential' });
    for (const [label, text] of [
      ['Name', 'From the site'],
      ['Zone', 'example.com'],
      ['DNS server', 'ns.example.com'],
      ['TSIG key name', 'key.example.com'],
      ['Secret', 'c2VjcmV0IG9mIGEgdGVzdA=='],
    ] as const) {
      await adding.getByLabel(label, { exact: true }).fill(text);
    }
    await adding.getByRole('button', { name: 'Save', exact: true }).click();
    await adding.waitFor({ state: 'detached' });
    await request.locator('.el-select').getByText('From the site', { exact: true }).waitFor();
    t.deepEqual([...(await layoutFaults(page)), ...visitor.faults()], []);
    await visitor.close();
  },
);

const CHAIN = 'Certificate chain (PEM)';
const KEY = 'Private key (PEM)';

/** Lets go of a file over a field, as people drag one there from elsewhere. */
async function drop(field: Locator, name: string, text: string): Promise<void> {
  const page = field.page();
  const files = await page.evaluateHandle(
    `(() => {
      const data = new DataTransfer();
      data.items.add(new File([${JSON.stringify(text)}], ${JSON.stringify(name)}));
      return data;
    })()`,
  );
  await field.dispatchEvent('dragover', { dataTransfer: files });
  await field.dispatchEvent('drop', { dataTransfer: files });
}

test.serial('a certificate comes from files, and another one takes its place by dropping them', async (t) => {
  const [root, middle] = [await testAuthority('Story Root'), await testAuthority('Story Middle')];
  const given = await testCertificate(['files.example.com'], { issuer: root });
  const next = await testCertificate(['files.example.com', 'more.example.com'], { issuer: middle, between: [middle] });
  const visitor = await stories.operatorVisit('/certificates?new=1');
  const { page } = visitor;
  const uploading = page.getByRole('dialog', { name: 'Upload a certificate' });
  await uploading.getByLabel('Name', { exact: true }).fill('from files');
  for (const [label, name, text] of [
    [CHAIN, 'chain.pem', given.chainPem],
    [KEY, 'key.pem', given.privateKeyPem],
  ] as const) {
    const file = uploading.locator(`input[type=file][aria-label="Choose a file: ${label}"]`);
    await file.setInputFiles({ name, mimeType: 'application/x-pem-file', buffer: Buffer.from(`\n${text}\n`) });
    await eventually(async () => (await uploading.getByLabel(label, { exact: true }).inputValue()) === text.trim());
  }
  await uploading.getByRole('button', { name: 'Upload', exact: true }).click();
  await page.getByText(given.fingerprint, { exact: true }).waitFor();
  const chain = page.getByRole('region', { name: 'Certificate chain' });
  t.deepEqual(await chain.locator('strong').allTextContents(), ['files.example.com']);

  await page.getByRole('button', { name: 'Replace', exact: true }).click();
  const replacing = page.getByRole('dialog', { name: 'Replace from files' });
  for (const [label, name, text] of [
    [CHAIN, 'chain.pem', next.chainPem],
    [KEY, 'key.pem', next.privateKeyPem],
  ] as const) {
    const field = replacing.getByLabel(label, { exact: true });
    await drop(field, name, text);
    await eventually(async () => (await field.inputValue()) === text.trim());
  }
  await replacing.getByRole('button', { name: 'Replace', exact: true }).click();
  await page.getByText(next.fingerprint, { exact: true }).waitFor();
  t.is(await page.getByText(given.fingerprint, { exact: true }).count(), 0);
  t.deepEqual(await chain.locator('strong').allTextContents(), ['files.example.com', 'Story Middle']);
  await page.getByText('more.example.com', { exact: true }).waitFor();
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

test.serial('compression is chosen by keyboard, and what differs from every preset says so', async (t) => {
  const site = await stories.newSite();
  const visitor = await stories.operatorVisit(`/sites/${site.id}/https#compression`);
  const { page } = visitor;
  const preset = page.getByRole('combobox', { name: 'Preset', exact: true });
  await preset.press('Enter');
  await page.getByRole('option', { name: 'gzip (standard)', exact: true }).waitFor();
  await preset.press('ArrowDown');
  await preset.press('Enter');
  await page
    .getByRole('switch', { name: 'Compress with Brotli', exact: true, checked: true })
    .waitFor({ state: 'attached' });
  await saveButton(page).press('Enter');
  const settings = () => api.ok('GET', `/sites/${site.id}/https`).then((answer) => answer.settings);
  t.like(await eventually(async () => ((await settings()).zstd ? settings() : undefined)), {
    gzip: true,
    brotli: true,
    zstd: true,
  });
  const effort = page.getByLabel('Brotli level', { exact: true });
  await effort.fill('9');
  await effort.press('Tab');
  await page.locator('.el-select', { has: preset }).getByText('Custom', { exact: true }).waitFor();
  await saveButton(page).press('Enter');
  t.is(await eventually(async () => ((await settings()).brotliLevel === 9 ? 9 : undefined)), 9);
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});

/** A site whose upload has expired, one that nobody could renew, and an order that failed. */
async function wanting() {
  const site = await stories.newSite();
  const day = 86_400_000;
  const upload = async (name: string, names: string[]): Promise<string> => {
    const { chainPem, privateKeyPem } = await testCertificate(names);
    return (await api.ok('POST', '/certificates/upload', { name, chainPem, privateKeyPem })).id;
  };
  const ended = await upload('ended', site.domains);
  await api.ok('PUT', `/sites/${site.id}/https`, { settings: { certificateId: ended, forceHttps: true } });
  await api
    .sql('certificate')
    .where({ id: ended })
    .update({ not_after: new Date(Date.now() - day) });
  const failed = await upload('failed', ['shop.example.com']);
  const now = new Date();
  const authorization = { url: '', wildcard: false, challengeUrl: '', token: '' };
  await api
    .sql('certificate')
    .where({ id: failed })
    .update({
      source: 'acme',
      status: 'error',
      requested_names: ['shop.example.com', 'www.shop.example.com'],
      auto_renew: true,
      last_error: 'acme_order_timeout',
      renew_at: new Date(now.getTime() + 3 * day),
      request: JSON.stringify({ ca: 'custom', challenge: 'http01', skipDnsCheck: true }),
    });
  await api.sql('acme_order').insert({
    certificate_id: failed,
    names: ['shop.example.com', 'www.shop.example.com'],
    state: 'failed',
    failed_step: 'validate',
    urgent: false,
    started_at: now,
    step_at: now,
    finished_at: now,
    error: 'acme_order_timeout',
    error_params: JSON.stringify({ names: ['www.shop.example.com'] }),
    authorizations: JSON.stringify([
      { ...authorization, name: 'shop.example.com', state: 'valid', error: null },
      { ...authorization, name: 'www.shop.example.com', state: 'invalid', error: 'acme_connection' },
    ]),
  });
  return { site, ended, failed };
}

test.serial('what ended or failed is found in the list, says why, and is replaced from its site', async (t) => {
  const { site, ended, failed } = await wanting();
  const faults: string[] = [];
  const looked = async (page: Page, name: string) => {
    for (const width of [1440, 375]) {
      await page.setViewportSize({ width, height: 900 });
      await settled(page);
      const wrong = [...(await layoutFaults(page)), ...(await accessibilityFaults(page))];
      faults.push(...wrong.map((fault) => `${name} ${width}: ${fault}`));
      await screenshot(page, `certificates-${name}-${width}`);
    }
    await page.setViewportSize({ width: 1440, height: 900 });
  };
  for (const [language, words] of [
    ['en', { filter: ['State', 'Last issuance failed'], why: 'The CA did not issue the certificate in time.' }],
    ['zh-CN', { filter: ['状态', '上次签发失败'], why: 'CA 未能及时签发证书。' }],
  ] as const) {
    const options: VisitOptions = { language, theme: language === 'en' ? 'light' : 'dark' };
    const visitor = await stories.operatorVisit('/certificates', options);
    const { page } = visitor;
    const row = (name: string) => page.getByRole('row').filter({ has: page.getByRole('link', { name, exact: true }) });
    await row('ended').waitFor();
    await row('failed').getByText(words.why).waitFor();
    await looked(page, `list-${language}`);
    await page.getByRole('combobox', { name: words.filter[0], exact: true }).press('Enter');
    await page.getByRole('option', { name: words.filter[1], exact: true }).click();
    await row('ended').waitFor({ state: 'detached' });
    await row('failed').getByRole('link', { name: 'failed', exact: true }).click();
    const progress = page.locator('section', { has: page.locator('#certificate-progress') });
    await progress.getByText(words.why).waitFor();
    t.is(await page.getByText(words.why).count(), 2);
    t.is(await page.getByText('acme_order_timeout').count(), 0);
    await looked(page, `failed-${language}`);
    if (language === 'en') {
      await progress.getByText('Affected: www.shop.example.com.').waitFor();
      await progress.getByText('www.shop.example.com: The CA cannot connect to a domain.').waitFor();
      await progress.getByText(/^Next attempt in [23] days/).waitFor();
    }
    await page.goto(`/sites/${site.id}/https`);
    await page
      .getByRole('button', { name: language === 'en' ? 'Get a certificate' : '获取证书', exact: true })
      .waitFor();
    await page.getByText(language === 'en' ? 'Expired' : '已过期', { exact: true }).waitFor();
    await looked(page, `site-${language}`);
    if (language === 'en') {
      // What would rescue the site's visitors is saved, expired or not.
      await page.getByRole('link', { name: 'Redirect and HSTS', exact: true }).click();
      await page.getByRole('switch', { name: 'Redirect to HTTPS', exact: true }).press('Space');
      await saveButton(page).click();
      await eventually(async () => !(await api.ok('GET', `/sites/${site.id}/https`)).settings.forceHttps);
      await page.getByRole('button', { name: 'Get a certificate', exact: true }).click();
      await page
        .getByRole('dialog', { name: 'HTTPS for this site' })
        .getByText(`Domains requested: ${site.domains[0]}.`)
        .waitFor();
    }
    faults.push(...visitor.faults());
    await visitor.close();
  }
  t.deepEqual(faults, []);
  t.deepEqual(
    (await api.ok('GET', '/certificates?condition=ending')).items.map(({ id }: { id: string }) => id),
    [ended],
  );
  t.not(ended, failed);
});
