/** The command that joins a machine to the cluster of a token. None of the values needs quoting by construction. */
export function installCommand(options: { serverUrl: string; caSha256: string; token: string }): string {
  const { serverUrl, caSha256, token } = options;
  return `npm run edge -- enroll --server ${serverUrl} --ca-sha256 ${caSha256} --token ${token}`;
}
