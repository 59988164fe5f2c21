import { loadRule } from '../../ops/rule.ts';
import { migrate } from '../../store/migrate.ts';
import { type AddCommand, command } from '../command.ts';
import { requireDatabaseUrl } from '../config.ts';
import { EXIT } from '../exit-codes.ts';
import { readRuleFile } from '../rule-file.ts';

/** `migrate`: the database's schema, and with --rules a job's first rule. */
export const addMigrate: AddCommand = (program, act) => {
  command(program, 'migrate', {
    summary: "bring the database to this release's schema; any number of starters at once",
    example: 'npx onceper migrate --rules rules/settlement.json',
  })
    .option('--rules <file>', 'load this rule file as version 1 of its job')
    .action(
      act(async (session, options: { readonly rules?: string }) => {
        const { registry, config } = session;
        const rules = options.rules === undefined ? null : readRuleFile(registry, options.rules);
        const { id: actor } = await session.actor();
        const { applied } = await migrate(requireDatabaseUrl(config));
        const loaded =
          rules === null
            ? null
            : await session.withDatabase((db) => loadRule(db, rules.checked, { at: rules.at, actor }));
        const lines = [applied.length === 0 ? 'the schema is up to date' : `applied ${applied.join(', ')}`];
        if (loaded !== null) lines.push(`rule of ${loaded.job}: version ${loaded.version}, ${loaded.kind}`);
        session.answer({ applied, rule: loaded }, lines.join('\n'));
        return EXIT.done;
      }),
    );
};
