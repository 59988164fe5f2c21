import type { StoredImport } from '../jobs/settlement/import/imported.ts';
import type { Tx } from '../kernel/sql.ts';
import { appendAudit } from '../store/audit.ts';

/** Appends that somebody imported a file, and by which word: what `importFile` takes as `audit`. */
export function auditImportBy(actor: string): (tx: Tx, stored: StoredImport) => Promise<void> {
  return async (tx, { file, ...detail }) => {
    await appendAudit(tx, {
      actor,
      verb: 'import',
      job: 'settlement',
      key: null,
      run: null,
      subject: file,
      detail: { file, ...detail },
    });
  };
}
