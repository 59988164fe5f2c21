/** The parts of a transfer that name something: a counterparty may write them as numbers, which name the same by their digits. */
const NAMING = new Set(['id', 'reference', 'destination']);
const PERHAPS = /"(?:id|reference|destination)"\s*:\s*\d/;
const WHOLE_NUMBER = /\s*:\s*(0|[1-9]\d*)(?=\s*[,}])/y;

/**
 * A JSON text in which the ids that are whole numbers are texts of the same digits. JSON.parse makes them doubles, and
 * 9007199254740993 the id of another transfer. Any other number is left as it is, so that an amount without quotes stays what
 * the contract does not know; a text that is no JSON stays none.
 */
export function quoteNumericIds(json: string): string {
  if (!PERHAPS.test(json)) return json;
  const parts: string[] = [];
  let kept = 0;
  for (let quote = json.indexOf('"'); quote !== -1; ) {
    const end = endOfString(json, quote);
    if (end === -1) break;
    WHOLE_NUMBER.lastIndex = end;
    const digits = NAMING.has(json.slice(quote + 1, end - 1)) ? WHOLE_NUMBER.exec(json)?.[1] : undefined;
    if (digits !== undefined) {
      parts.push(json.slice(kept, WHOLE_NUMBER.lastIndex - digits.length), `"${digits}"`);
      kept = WHOLE_NUMBER.lastIndex;
    }
    quote = json.indexOf('"', end);
  }
  return parts.join('') + json.slice(kept);
}

/** The place after the string that opens at `quote`, -1 where it is never closed. */
function endOfString(json: string, quote: number): number {
  for (let end = json.indexOf('"', quote + 1); end !== -1; end = json.indexOf('"', end + 1)) {
    let slashes = 0;
    while (json[end - 1 - slashes] === '\\') slashes += 1;
    if (slashes % 2 === 0) return end + 1;
  }
  return -1;
}
