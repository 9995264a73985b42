// Certificates in the Web UI: uploaded, chosen for a site, replaced, and kept while somebody uses them.
import test from 'ava';
import { ConsoleStories, saveButton } from '../helpers/console-stories.ts';
import { eventually } from '../helpers/eventually.ts';
import { testCertificate } from '../helpers/site-certificates.ts';

const stories = new ConsoleStories(2);

test.before(() => stories.start());
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
  await dialog.getByLabel('Certificate and chain (PEM)', { exact: true }).fill(certificate.chainPem);
  await dialog.getByLabel('Private key (PEM)', { exact: true }).fill(other.privateKeyPem);
  await dialog.getByRole('button', { name: 'Upload', exact: true }).click();
  await dialog.getByText('The key is not that of the certificate.').waitFor();
  await dialog.getByLabel('Private key (PEM)', { exact: true }).fill(certificate.privateKeyPem);
  await dialog.getByRole('button', { name: 'Upload', exact: true }).click();
  await page.getByRole('heading', { name: 'shop', level: 1 }).waitFor();
  await page.getByText('No site uses it.').waitFor();
  t.false((await page.content()).includes('PRIVATE KEY'));

  await page.goto(`/sites/${site.id}/https`);
  await page.getByText('This site is reached by plain HTTP alone.').waitFor();
  await page.getByRole('combobox', { name: 'Certificate of the site', exact: true }).click();
  await page.getByRole('option', { name: 'shop', exact: true }).click();
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
  await page.getByText('1 site uses it. Choose another certificate there first.').waitFor();
  t.deepEqual(visitor.faults(), []);
  await visitor.close();
});
