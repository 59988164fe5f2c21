import { OnceperError } from './error.ts';

const subjectForm = /^[a-z0-9-]+$/;
const sourceForm = /^[a-z][a-z0-9-]*$/;
const digestForm = /^[0-9a-f]{64}$/;

/** 20 hex digits are 80 bits: among a million names of a source the chance of any collision is about 4 in 10^13. */
const digestLength = 20;

/** JavaScript's white space and NEL, the line end of mainframe exports, which `\s` leaves out. */
const blanks = /[\s\u0085]+/gu;

/**
 * A name as it is compared and hashed: NFC, trimmed, runs of blanks made one space, lower case whatever the process's
 * locale. Applying it twice changes nothing.
 */
export function canonicalName(name: string): string {
  // Lower case of a composed letter may be decomposed, so composition comes once more at the end.
  return name.normalize('NFC').toLowerCase().normalize('NFC').replace(blanks, ' ').trim();
}

/**
 * The id of a subject whose source has an id of its own for it: that id, unchanged.
 *
 * @throws OnceperError `malformed_subject` for characters other than a-z, 0-9 and '-', or an empty id.
 */
export function statedSubjectId(id: string): string {
  if (!subjectForm.test(id)) {
    throw new OnceperError({
      code: 'malformed_subject',
      message: `subject id '${id}' has characters other than a-z, 0-9 and '-', or none`,
      remedy: 'correct the id at its source; it becomes part of payout numbers and is never altered on the way',
      at: id,
    });
  }
  return id;
}

/**
 * The id of a subject that its source knows by name only: `m-` and the first 20 hex digits of the SHA-256 over source
 * and canonical name. It depends on nothing else, so files imported in another order give the same ids.
 *
 * @param sha256 the SHA-256 of a text's UTF-8 bytes, as 64 lower case hex digits (the kernel imports no node: module).
 * @throws OnceperError `malformed_subject` for a blank name or a source outside `[a-z][a-z0-9-]*`.
 */
export function derivedSubjectId(source: string, name: string, sha256: (text: string) => string): string {
  if (!sourceForm.test(source)) throw malformedSubject(source, `'${source}' is not the name of a source`);
  const canonical = canonicalName(name);
  if (canonical === '') throw malformedSubject(source, 'the name is blank');
  // Neither part can hold a line feed (a source by its form, a name because blanks became spaces): one text, one pair.
  const digest = sha256(`${source}\n${canonical}`);
  if (!digestForm.test(digest)) throw malformedSubject(source, 'sha256 did not answer 64 lower case hex digits');
  return `m-${digest.slice(0, digestLength)}`;
}

function malformedSubject(source: string, reason: string): OnceperError {
  return new OnceperError({
    code: 'malformed_subject',
    message: `no subject id can be derived: ${reason}`,
    remedy: "give the row a merchant's name, and the source a name of lower case letters, digits and '-'",
    at: source,
  });
}
