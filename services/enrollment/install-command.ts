/** The command that joins a machine to the cluster of a token. None of the values needs quoting by construction. */
export function installCommand(options: { serverUrl: string; caSha256: string; token: string }): string {
  const { serverUrl, caSha256, token } = options;
  // An origin leaves out 443, which the agent would read as the channel's usual port.
  const server = new URL(serverUrl).port === '' ? `${serverUrl}:443` : serverUrl;
  // The token in the environment: arguments are visible to every user of the machine.
  return `SVC_TOKEN=${token} npm run edge -- enroll --server ${server} --ca-sha256 ${caSha256}`;
}
