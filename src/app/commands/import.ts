import type { JobRule } from '../../jobs/rule.ts';
import { importFile } from '../../jobs/settlement/import/import-file.ts';
import type { Imported } from '../../jobs/settlement/import/imported.ts';
import type { Instant } from '../../kernel/sql.ts';
import { clockIn } from '../../kernel/zone-clock.ts';
import { auditImportBy } from '../../ops/import-audit.ts';
import { importReport } from '../../ops/import-report.ts';
import { activeRuleOf } from '../../ops/rule.ts';
import { disputeWithProcess } from '../../ops/zones.ts';
import { clockOf, connect } from '../../store/database.ts';
import { type AddCommand, command } from '../command.ts';
import { EXIT } from '../exit-codes.ts';
import { usage } from '../fault.ts';
import type { Session } from '../session.ts';
import { linesOf } from '../terminal.ts';

/** `import FILE`: transactions of settlement, the whole file or nothing. */
export const addImport: AddCommand = (program, act) => {
  command(program, 'import <file>', {
    summary: 'store the transactions of a file, plain or gz, whole or not at all; known rows add nothing',
    example: 'npx onceper import transactions.csv.gz --source birmingham-cards',
  })
    .requiredOption('--source <name>', 'the declared format of the file')
    .option(
      '--as-new',
      'store rows that equal stored ones in everything but their ids: they are transactions of their own',
    )
    .option('--as-known', 'leave out rows that equal stored ones in everything but their ids: they are known')
    .option('--allow-repeats', 'count rows of one id and content within the file as one transaction')
    .action(
      act(async (session, file: string, options: Options) => {
        const { imported, rule, now } = await store(session, file, options);
        const dispute = disputeWithProcess(rule, now);
        if (dispute !== null) session.note(dispute.text);
        for (const line of refusalLines(imported)) session.note(line);
        const { source, rows, added, known, knownFrom, repeats, late, refused } = imported;
        const zone = { name: rule.zone, facts: clockIn(rule).facts, disputed: dispute?.at ?? null };
        const held = imported.kind === 'held' ? imported.held : null;
        const counts = { file, source, rows, added, known, knownFrom, repeats, late, refused, held };
        session.answer({ ...counts, zone }, linesOf(importReport(imported)));
        return imported.kind === 'imported' ? EXIT.done : EXIT.refused;
      }),
    );
};

interface Options {
  readonly source: string;
  readonly allowRepeats?: true;
  readonly asNew?: true;
  readonly asKnown?: true;
}

/** What an import was, the rule that places its rows, and when. */
interface Stored {
  readonly imported: Imported;
  readonly rule: JobRule;
  readonly now: Instant;
}

function store(session: Session, file: string, { source, allowRepeats, ...word }: Options): Promise<Stored> {
  if (word.asNew && word.asKnown) {
    throw usage('--as-new and --as-known exclude each other', '--as-new --as-known', 'say one of them');
  }
  const { registry } = session;
  const path = session.pathOfFile(file);
  return session.withDatabase(async (db) => {
    const { rule } = await activeRuleOf(db, registry, 'settlement');
    const { id: actor } = await session.actor();
    const imported = await importFile({
      connect: () => connect(db),
      file,
      path,
      source,
      actor,
      rule,
      allowRepeats: allowRepeats === true,
      ...(word.asNew && { as: 'new' as const }),
      ...(word.asKnown && { as: 'known' as const }),
      audit: auditImportBy(actor),
    });
    return { imported, rule, now: await clockOf(db) };
  });
}

/** A file can be wrong in every row: some lines show the kind of mistake, a count the size. */
const REFUSALS_SHOWN = 20;

function refusalLines({ file, refused, refusedTotal }: Imported): string[] {
  const shown = refused.slice(0, REFUSALS_SHOWN).map(({ line, reason }) => `${file}:${line}: ${reason}`);
  return refusedTotal > shown.length ? [...shown, `and ${refusedTotal - shown.length} more`] : shown;
}
