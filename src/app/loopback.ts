/** Whether a host, as a URL or an address to listen on names it, is this machine alone. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '[::1]' || host === '::1' || /^127(\.\d+){3}$/.test(host);
}
