import { createPrivateKey } from 'node:crypto';
import type { Command } from 'commander';
import { SignJWT } from 'jose';
import { actorId, parseRoles, type Role } from '../../kernel/actor.ts';
import { algorithmsOf, readKey } from '../actor.ts';
import { type Act, type AddCommand, command, noun } from '../command.ts';
import type { Config } from '../config.ts';
import { EXIT } from '../exit-codes.ts';
import { usage } from '../fault.ts';
import { duration } from '../options.ts';

/** `token issue|show`: who a person is, for installations without an identity provider. */
export const addToken: AddCommand = (program, act) => {
  const token = noun(program, 'token', 'who a person is, and what they may do');
  addIssue(token, act);
  command(token, 'show', {
    summary: 'who this shell acts as, and in which roles',
    example: 'npx onceper token show',
  }).action(
    act(async (session) => {
      // Without the token: it is a credential.
      const { token: _, ...actor } = await session.actor();
      session.answer(actor, `${actor.id}: ${actor.roles.join(', ') || 'no role'}`);
      return EXIT.done;
    }),
  );
};

interface IssueOptions {
  readonly subject: string;
  readonly roles: readonly Role[];
  readonly name?: string;
  readonly for: number;
}

/** A working day; a token can't be taken back before it ends. */
const EIGHT_HOURS_MS = 28_800_000;
const LONGEST_MS = 30 * 86_400_000;

function addIssue(token: Command, act: Act): void {
  command(token, 'issue', {
    summary: 'sign a token with the private key of ONCEPER_TOKEN_KEY; whoever holds it is that person until it ends',
    example: 'export ONCEPER_TOKEN=$(npx onceper token issue --subject alice --roles operator --for 8h)',
  })
    .requiredOption('--subject <id>', 'the person’s id, never given to another')
    .requiredOption('--roles <roles>', 'viewer, operator, approver, with commas between them', roles)
    .option('--name <name>', 'the person’s name, for people to read')
    .option('--for <duration>', 'how long it holds, at most 30d', duration('--for'), EIGHT_HOURS_MS)
    .action(
      act(async (session, options: IssueOptions) => {
        if (options.for > LONGEST_MS) throw usage('that is longer than 30 days', '--for', 'for example 8h');
        const issued = await issue(session.config, options);
        session.answer(issued, issued.token);
        return EXIT.done;
      }),
    );
}

async function issue({ identity }: Config, options: IssueOptions) {
  const { subject, roles: granted, name, for: forMs } = options;
  const key = readKey(identity.tokenKey, 'ONCEPER_TOKEN_KEY', createPrivateKey);
  const [alg = ''] = algorithmsOf(key, 'ONCEPER_TOKEN_KEY');
  const until = new Date(Date.now() + forMs);
  const claims = { roles: granted, ...(name === undefined ? {} : { name }) };
  const token = await new SignJWT(claims)
    .setProtectedHeader({ alg })
    .setSubject(subject)
    .setAudience(identity.audience)
    .setIssuer(identity.issuer ?? 'onceper')
    .setIssuedAt()
    .setExpirationTime(until)
    .sign(key);
  return { id: actorId('user', subject), roles: granted, expiresAt: until.toISOString(), token };
}

function roles(text: string): readonly Role[] {
  const parsed = parseRoles(text);
  if (parsed !== null) return parsed;
  throw usage(`'${text}' names no roles`, `--roles ${text}`, 'for example --roles operator');
}
