/** Whether a status is a definite no. A request that timed out on the way in (408) has ended nowhere that we know of. */
export function isDefinite(status: number): boolean {
  return status >= 400 && status < 500 && status !== 408;
}

/** Whether a look-up was turned down for good: not because it came at once with another (409), or too often (429). */
export function isBarredLookUp(status: number): boolean {
  return isDefinite(status) && status !== 409 && status !== 429;
}
