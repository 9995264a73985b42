/** The command that joins a machine to the cluster of a token. None of the values needs quoting by construction. */
export function installCommand(options: { serverUrl: string; caSha256: string; token: string }): string {
  const { serverUrl, caSha256, token } = options;
  // The token in the environment: arguments are visible to every user of the machine.
  return `SVC_TOKEN=${token} npm run edge -- enroll --server ${serverUrl} --ca-sha256 ${caSha256}`;
}
